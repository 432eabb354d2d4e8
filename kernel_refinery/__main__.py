import sys

from kernel_refinery.command import main

sys.exit(main())
