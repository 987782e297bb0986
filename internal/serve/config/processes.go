package config

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Processes are the limits of the programs that serve sandboxes: each lives in a control group
// of its own. Without control groups (`cofferdam doctor` says so) they are not enforced.
type Processes struct {
	// Gateway is what talks to registries and hosts for all sandboxes, with its dialer; it is started
	// again when its limit ends it, and what was under way is refused.
	Gateway ProcessLimit `yaml:"gateway"`
	// Keeper is what holds all sandboxes; they end with it when its limit ends it, and it is started
	// again.
	Keeper ProcessLimit `yaml:"keeper"`
	// Stage is for the programs that write the files of one sandbox, of each; an operation
	// that its limit ends fails, and says so.
	Stage ProcessLimit `yaml:"stage"`
}

// ProcessLimit bounds one of them.
type ProcessLimit struct {
	// Memory is what it may have, page cache included; a quarter of the machine's memory, at
	// least 1GiB, and 512MiB for a stage.
	Memory Bytes `yaml:"memory"`
	// Tasks are processes and threads; 2048, and 256 for a stage.
	Tasks int `yaml:"tasks"`
	// CPUWeight is the share of the processors where more is wanted than there is, 1 to 10000: among
	// the gateway and the keeper, and for a stage among its owner's sandboxes; 100.
	CPUWeight int `yaml:"cpu_weight"`
}

// Least values: below them the programs do not start.
const (
	leastProcessMemory = 64 << 20
	leastProcessTasks  = 64
)

func (p Processes) checkKeys() error {
	for _, l := range []struct {
		name  string
		limit ProcessLimit
	}{{"gateway", p.Gateway}, {"keeper", p.Keeper}, {"stage", p.Stage}} {
		if m := l.limit.Memory; m != 0 && m < leastProcessMemory {
			return fmt.Errorf("processes.%s.memory is %d bytes; it must be at least 64MiB", l.name, m)
		}
		if n := l.limit.Tasks; n != 0 && n < leastProcessTasks {
			return fmt.Errorf("processes.%s.tasks is %d; it must be at least %d", l.name, n, leastProcessTasks)
		}
		if w := l.limit.CPUWeight; w < 0 || w > 10000 {
			return fmt.Errorf("processes.%s.cpu_weight is %d; it must be 1 to 10000", l.name, w)
		}
	}
	return nil
}

func (p Processes) withDefaults() Processes {
	p.Gateway = p.Gateway.orDefaults(Bytes(quarterOfMemory()), 2048)
	p.Keeper = p.Keeper.orDefaults(Bytes(quarterOfMemory()), 2048)
	p.Stage = p.Stage.orDefaults(512<<20, 256)
	return p
}

func (l ProcessLimit) orDefaults(memory Bytes, tasks int) ProcessLimit {
	if l.Memory == 0 {
		l.Memory = memory
	}
	if l.Tasks == 0 {
		l.Tasks = tasks
	}
	if l.CPUWeight == 0 {
		l.CPUWeight = 100
	}
	return l
}

// quarterOfMemory is of this machine's, at least 1 GiB.
func quarterOfMemory() int64 {
	const least = 1 << 30
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return least
	}
	return max(least, int64(info.Totalram)*int64(info.Unit)/4)
}
