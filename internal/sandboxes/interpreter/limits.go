package interpreter

import "time"

// The bounds of one sandbox, and of one cell.
const (
	MaxCode     = 1 << 20  // bytes of a cell
	maxContexts = 32       // of a sandbox, the default ones included
	maxWaiting  = 16       // cells that wait for their turn in a context
	maxDir      = 4 << 10  // bytes of a working directory
	maxLine     = 8 << 20  // bytes of a message
	maxOutput   = 32 << 20 // bytes of all messages of a cell
	maxFormats  = 32       // of one result, that are handed on
	mostFormats = 1 << 10  // of one result, that are read
	maxFormat   = 128      // bytes of a format's name
	maxError    = 1 << 10  // bytes of the name of an error
	maxValue    = 64 << 10 // bytes of its sentence
	maxTrace    = 1 << 20  // bytes of its traceback
	heldLine    = 64 << 10 // of a line, for which nobody is asked for room
)

// How long a kernel may take.
const (
	startTimeout   = time.Minute      // until it is ready
	idleTime       = 3 * time.Second  // to end by itself what another daemon gave it
	interruptGrace = 5 * time.Second  // to end a cell that is interrupted
	takeTimeout    = 30 * time.Second // to take a request
	killTimeout    = 20 * time.Second // to be told of its end, which takes the daemon 15 at most
)
