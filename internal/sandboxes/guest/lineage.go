package guest

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A command's number is written into two hard limits of its first process, which all that comes
// of it inherits: one grows with the number, the other falls. A process without rights can lower
// a hard limit and never raise it, so that none can show the pair of another command. Both are
// so high that they limit nothing, and are of a kind that programs leave alone; the kernels
// that a sandbox may have (Linux, gVisor) let them be set. "ulimit -m unlimited" fails in a command
// for that, as under any hard limit.
const (
	growing = uint64(1) << 60 // of RLIMIT_RSS: growing + number
	falling = uint64(1) << 61 // of RLIMIT_DATA: falling - number
	// numberLimit bounds the numbers, so that the two limits stay what they are.
	numberLimit = uint64(1) << 40
)

// lineage is what a process's limits tell of the command that it came of: its number is at
// least low and at most high. The two are equal unless the process, or one that it came of, has
// lowered a limit.
type lineage struct{ low, high uint64 }

// unknown is the lineage of a process whose limits tell nothing.
func unknown() lineage { return lineage{high: math.MaxUint64} }

// certain tells whether the limits leave one number.
func (l lineage) certain() bool { return l.low == l.high }

// allows tells whether a process of the command with this number may have these limits; 0 is a
// command without a number, of which the limits tell nothing.
func (l lineage) allows(number uint64) bool {
	return number == 0 || l.low <= number && number <= l.high
}

// lineageOf reads the lineage of a process.
func lineageOf(pid int) lineage {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return unknown() // it has ended, or the kernel does not tell
	}
	return parseLineage(text)
}

// parseLineage reads the lineage out of a process's table of limits.
func parseLineage(text []byte) lineage {
	l := unknown()
	if grown, ok := hardLimit(text, "Max resident set"); ok && grown > growing {
		if grown > growing+numberLimit {
			return unknown() // no agent wrote that
		}
		l.low = grown - growing
	}
	if fallen, ok := hardLimit(text, "Max data size"); ok {
		if fallen >= falling {
			return unknown()
		}
		l.high = falling - fallen
	}
	if l.low > l.high {
		return unknown() // somebody with rights has raised one: of no command would be out of reach of each
	}
	return l
}

// hardLimit finds one in a table of limits, in bytes; false where there is none.
func hardLimit(table []byte, name string) (uint64, bool) {
	for line := range bytes.Lines(table) {
		rest, found := bytes.CutPrefix(line, []byte(name+" "))
		if fields := bytes.Fields(rest); found && len(fields) >= 2 {
			n, err := strconv.ParseUint(string(fields[1]), 10, 64)
			return n, err == nil // else it is "unlimited"
		}
	}
	return 0, false
}

// numberLimits are the limits that carry a command's number, of RLIMIT_RSS and RLIMIT_DATA; nil
// where the agent itself has lower ones, which are not raised, or there is no number.
func numberLimits(number uint64) (grown, fallen *unix.Rlimit, err error) {
	if number == 0 || number >= numberLimit {
		return nil, nil, nil
	}
	grown = &unix.Rlimit{Cur: growing + number, Max: growing + number}
	fallen = &unix.Rlimit{Cur: falling - number, Max: falling - number}
	for resource, want := range map[int]*unix.Rlimit{unix.RLIMIT_RSS: grown, unix.RLIMIT_DATA: fallen} {
		var own unix.Rlimit
		if err := unix.Getrlimit(resource, &own); err != nil {
			return nil, nil, fmt.Errorf("read the limit %d: %w", resource, err)
		}
		if own.Max < want.Max {
			return nil, nil, nil
		}
		want.Cur = min(want.Cur, own.Cur)
	}
	return grown, fallen, nil
}
