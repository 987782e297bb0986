// Package probe tries from inside of a sandbox what no sandbox may do, and says what
// came of it. It is a part of the guest agent's program, started as an ordinary command,
// and has no rights that a command has not.
//
// The host gives it tasks; attempts that are made in one process are one step, and each attempt
// comes to one word. It does what a hostile program would do first, and nothing that could harm a
// host on which it succeeds: what it manages to write it removes, and the one clock that it sets it
// sets to what it is.
package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Argument is how the agent's program is asked for it: Argument STEP TASK.
const Argument = "prove-controls"

// patience bounds each attempt on the network.
const patience = 2 * time.Second

// Step is attempts that are made together.
type Step string

// The steps. A memory that is limited ends Memory, and may end the sandbox.
const (
	Look      Step = "look"
	Processes Step = "processes"
	Disk      Step = "disk"
	Memory    Step = "memory"
	Compute   Step = "compute"
)

// Task is what is to be tried. Where there is nothing to try with, the attempt is not
// made.
type Task struct {
	Token       string   `json:"token"`              // carried out, if there is a way
	Canaries    []string `json:"canaries,omitempty"` // where the host listens: IP:PORT
	Name        string   `json:"name,omitempty"`     // that the policy denies
	ReadOnly    []string `json:"read_only,omitempty"`
	Pids        int      `json:"pids,omitempty"`
	DiskBytes   int64    `json:"disk_bytes,omitempty"`
	MemoryBytes int64    `json:"memory_bytes,omitempty"`
	Threads     int      `json:"threads,omitempty"` // that compute
}

// Attempt names one.
type Attempt string

// The attempts.
const (
	Addresses    Attempt = "addresses"
	RawSockets   Attempt = "raw sockets"
	Interfaces   Attempt = "interfaces"
	Name         Attempt = "name"
	Metadata     Attempt = "metadata"
	Capabilities Attempt = "capabilities"
	Privileges   Attempt = "privileges"
	OtherUser    Attempt = "other user"
	SystemFiles  Attempt = "system files"
	Template     Attempt = "template"
	Mounts       Attempt = "mounts"
	Clock        Attempt = "clock"
	Channel      Attempt = "channel"
	Kernel       Attempt = "kernel"
	ProcessLimit Attempt = "process limit"
	DiskLimit    Attempt = "disk limit"
	MemoryLimit  Attempt = "memory limit"
	CPULimit     Attempt = "CPU limit"
)

// Word is what one attempt came to. Got tells that it had what no sandbox may have.
type Word struct {
	Attempt Attempt `json:"attempt"`
	Got     bool    `json:"got,omitempty"`
	Says    string  `json:"says"`
}

// MarkName is the file that a probe makes in the system's directories.
func MarkName(token string) string { return ".cofferdam-proof-" + token }

// MarkedDirs are where it makes them.
func MarkedDirs() []string { return []string{"/usr", "/etc"} }

// teller writes words as they come: who ends the process can't take them back.
type teller struct{ out *json.Encoder }

func (t teller) tellGot(a Attempt, format string, args ...any) {
	_ = t.out.Encode(Word{a, true, fmt.Sprintf(format, args...)}) // who reads it misses it
}

func (t teller) tellRefused(a Attempt, format string, args ...any) {
	_ = t.out.Encode(Word{a, false, fmt.Sprintf(format, args...)}) // who reads it misses it
}

// Run makes the attempts of a step and writes a word for each, as JSON lines. It
// returns the exit code.
func Run(args []string, out, complaint io.Writer) int {
	if err := runTasks(args, teller{json.NewEncoder(out)}); err != nil {
		_, _ = fmt.Fprintln(complaint, Argument+":", err)
		return 2
	}
	return 0
}

func runTasks(args []string, say teller) error {
	if len(args) != 2 {
		return errors.New("it is for the host, and takes a step and a task")
	}
	var task Task
	if err := json.Unmarshal([]byte(args[1]), &task); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	switch Step(args[0]) {
	case Look:
		lookAtHost(task, say)
	case Processes:
		processes(task, say)
	case Disk:
		fillDisk(task, say)
	case Memory:
		memory(task, say)
	case Compute:
		compute(task)
	default:
		return fmt.Errorf("there is no step %q", args[0])
	}
	return nil
}

func lookAtHost(task Task, say teller) {
	channelOf(say) // first: this process has opened nothing yet
	addresses(task, say)
	rawSockets(say)
	interfaces(say)
	lookUpName(task, say)
	metadata(say)
	systemFiles(task, say)
	mounts(task, say)
	setClock(say)
	kernel(say)
	rights(say) // last: it may change who this process is
}
