"""Wrong kernels of unknown authors: does the judge name the cause?"""
