"""What each thing is: records, guards, next-record functions, codec, ids and times. Standard library only, no I/O."""
