// Figures as people read them; the same forms as `agent.show` prints.

const STATUSES = {
  correct: 'correct',
  no_code: 'no code',
  build_error: 'does not build',
  runtime_error: 'crashes',
  timeout: 'too slow to judge',
  incorrect: 'wrong',
  integrity: 'cheats',
};

function ratioWords(value) {
  if (value >= 1000) return value.toExponential(0);
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

function speedupWords(speedup, low, high) {
  if (speedup === null) return '';
  const bounds = [low, high].map((bound) => (bound === null ? '-' : ratioWords(bound)));
  return `${ratioWords(speedup)}x [${bounds.join(', ')}]`;
}

function latencyWords(us) {
  if (us === null) return '';
  if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(2)} ms`;
  return `${us < 10 ? us.toFixed(2) : us.toFixed(0)} us`;
}

function dollarWords(usd) {
  if (usd === null) return 'unknown';
  if (usd === 0) return 'free';
  return `$${usd >= 1 ? usd.toFixed(2) : usd >= 0.001 ? usd.toFixed(3) : usd.toPrecision(1)}`;
}

function secondWords(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, '0');
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

function unitWords(value, unit) {
  if (value === null) return '-';
  return unit === 'share' ? `${Math.round(100 * value)} %` : `${ratioWords(value)}x`;
}
