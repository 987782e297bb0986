package guest

import (
	"fmt"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// commands knows the commands that run now, or whose exit the host has not got.
type commands struct {
	mu      sync.Mutex // guards what follows
	running map[string]*execCommand
	last    uint64 // the number of the one that came last; 0: there was none
}

func newCommands() *commands { return &commands{running: map[string]*execCommand{}} }

// reserve takes an id for a command that is about to start.
func (c *commands) reserve(id string, cmd *execCommand) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.running[id]; ok {
		return fmt.Errorf("a command with the id %.80q runs already", id)
	}
	c.running[id] = cmd
	if cmd.number == 0 { // else it has its id anew
		c.last++
		cmd.number = c.last
	}
	return nil
}

// hasAny tells whether there has ever been a command.
func (c *commands) hasAny() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last > 0
}

// findCommand returns the command with an id; nil if none has it.
func (c *commands) findCommand(id string) *execCommand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[id]
}

// pidOf is that of a command's first process; 0 until it runs.
func (c *commands) pidOf(cmd *execCommand) int {
	if !cmd.isRunning() {
		return 0
	}
	return c.rootOf(cmd).Pid
}

// rootOf is a command's first process; zero until it is forked.
func (c *commands) rootOf(cmd *execCommand) process.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmd.root
}

// releaseID gives an id back.
func (c *commands) releaseID(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
}

// started makes known the first process of a reserved command; none, if it became nothing.
func (c *commands) started(cmd *execCommand, root process.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cmd.root = root
}

// describeTree describes what belongs to cmd, given what else r has started.
func (c *commands) describeTree(cmd *execCommand, self int, r *reaper) *processTree {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &processTree{
		root: cmd.root, id: cmd.exec.ID, number: cmd.number, self: self, reaper: r,
		others: func() neighbours { return c.neighbours(cmd, r) },
	}
}

// neighbours are the first processes of all commands but one, also of those that
// ended while what they left behind runs, and whatever else r has started. Needs r.mu.
func (c *commands) neighbours(cmd *execCommand, r *reaper) neighbours {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := neighbours{}
	for id, other := range c.running {
		if other != cmd && other.root.Pid != 0 {
			found[other.root] = neighbour{id: id, number: other.number}
		}
	}
	for _, child := range r.waiting {
		if _, ok := found[child.id]; !ok && child.id != cmd.root {
			found[child.id] = neighbour{}
		}
	}
	return found
}
