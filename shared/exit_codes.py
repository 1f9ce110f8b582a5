"""What the end of a process says to its supervisor."""

#: A decode took longer than the stall limit.
EXIT_STALLED = 71
#: Others declared this worker dead.
EXIT_BURIED = 72
#: A worker was told to stop while Redis was away for longer than it may drain.
EXIT_GIVEN_UP = 73
#: It cannot work as it is set up (``EX_CONFIG`` of sysexits.h).
EXIT_CONFIG = 78
