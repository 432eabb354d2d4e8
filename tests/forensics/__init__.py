"""Wrong kernels with one planted bug each: does the judge name it?"""
