package attest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest/probe"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// maxSays bounds what is told of one control: the words come from inside.
const maxSays = 600

// controlRule is how one control is judged.
type controlRule struct {
	name    string
	tried   string
	attempt probe.Attempt
	needs   engine.Control // which engines declare; "" if each has it
	// seen is what the host saw of an attempt that got through; "": nothing, or the host
	// can't see it.
	seen func(Evidence) string
	// held is what the host knows of an attempt that leaves no words; "": it must have some.
	held func(Evidence) string
}

// controlRules are all controls, in the order in which they are told.
func controlRules() []controlRule {
	return append(network(), append(rights(), limitRules()...)...)
}

func network() []controlRule {
	return []controlRule{
		{
			name: "network by address", tried: "connect to addresses of this host, where it listens, and beyond it", attempt: probe.Addresses, needs: engine.ControlNoNetwork,
			seen: func(e Evidence) string {
				if len(e.Visits) == 0 {
					return ""
				}
				return "this host was visited at " + strings.Join(e.Visits, ", ")
			},
		},
		{name: "raw sockets", tried: "make sockets below TCP and UDP", attempt: probe.RawSockets, needs: engine.ControlNoNetwork},
		{name: "interfaces", tried: "find another interface than the loopback", attempt: probe.Interfaces, needs: engine.ControlNoNetwork},
		{name: "name not listed", tried: "look up a name that the policy does not list", attempt: probe.Name},
		{name: "metadata address", tried: "connect to where clouds keep a machine's credentials", attempt: probe.Metadata, needs: engine.ControlNoNetwork},
	}
}

func rights() []controlRule {
	return []controlRule{
		{name: "capabilities", tried: "ask for all capabilities", attempt: probe.Capabilities},
		{name: "no_new_privs", tried: "take no_new_privs back", attempt: probe.Privileges},
		{name: "user", tried: "become root", attempt: probe.OtherUser, needs: engine.ControlNonRootUser},
		{name: "system files", tried: "write to /usr and /etc as the user of commands", attempt: probe.SystemFiles},
		{
			name: "template", tried: "write to /usr and /etc as root inside, and look for it in the template", attempt: probe.Template, needs: engine.ControlReadOnlyRoot,
			seen: func(e Evidence) string {
				if len(e.Changed) == 0 {
					return ""
				}
				return "the template was changed: " + strings.Join(e.Changed, ", ")
			},
		},
		{name: "read-only mounts", tried: "write to each", attempt: probe.Mounts},
		{name: "clock", tried: "set it", attempt: probe.Clock},
		{name: "channel", tried: "reach the one connection that leads out", attempt: probe.Channel},
		{name: "kernel", tried: "find this host's kernel", attempt: probe.Kernel, needs: engine.ControlOwnKernel, seen: sameKernel},
	}
}

func limitRules() []controlRule {
	return []controlRule{
		{name: "process limit", tried: "make more processes than there may be", attempt: probe.ProcessLimit, needs: engine.ControlNProc},
		{name: "disk limit", tried: "write more than there may be", attempt: probe.DiskLimit, needs: engine.ControlDiskCap},
		{
			name: "memory limit", tried: "use more than there may be", attempt: probe.MemoryLimit, needs: engine.ControlMemory,
			held: func(e Evidence) string {
				if !e.OutOfMemory {
					return ""
				}
				return "the twin's memory ended, and what used it was killed"
			},
		},
		{
			name: "CPU limit", tried: "compute on more processors than there may be", attempt: probe.CPULimit, needs: engine.ControlCPU,
			seen: func(e Evidence) string {
				if e.Computed == nil || !e.Computed.isOver() {
					return ""
				}
				return fmt.Sprintf("the twin had %.2f processors, and %.2f is the limit", e.Computed.Used, e.Computed.Limit)
			},
			held: func(e Evidence) string {
				if e.Computed == nil || e.Computed.Throttled == 0 {
					return ""
				}
				return fmt.Sprintf("this host's kernel had the twin wait %d times; it had %.2f processors of %.2f", e.Computed.Throttled, e.Computed.Used, e.Computed.Limit)
			},
		},
	}
}

func sameKernel(e Evidence) string {
	for _, w := range e.Words {
		if w.Attempt == probe.Kernel && w.Says == strings.TrimSpace(e.HostKernel) {
			return "the kernel inside is this host's"
		}
	}
	return ""
}

// Judge says of each control what is known of it.
func Judge(e Evidence) []Control {
	all := controlRules()
	judged := make([]Control, 0, len(all))
	for _, r := range all {
		c := Control{Name: r.name, Tried: r.tried}
		c.Outcome, c.Says = r.judgeEvidence(e)
		c.Says = text.Shorten(c.Says, maxSays)
		judged = append(judged, c)
	}
	return judged
}

func troubled(why []string) string {
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}

// judgeEvidence believes the host before the probe, and an attempt that got through before all
// that did not.
func (r controlRule) judgeEvidence(e Evidence) (Outcome, string) {
	if why, missing := e.Missing[r.needs]; missing && r.needs != "" {
		return NotApplicable, "it is not enforced here: " + why
	}
	if r.seen != nil {
		if what := r.seen(e); what != "" {
			return Failed, what
		}
	}
	var said []string
	for _, w := range e.Words {
		if w.Attempt != r.attempt {
			continue
		}
		if w.Got {
			return Failed, w.Says
		}
		if !slices.Contains(said, w.Says) {
			said = append(said, w.Says)
		}
	}
	if why, untried := e.Untried[r.attempt]; untried {
		return NotApplicable, why
	}
	if r.held != nil {
		if what := r.held(e); what != "" {
			said = append(said, what)
		}
	}
	if len(said) == 0 {
		return Failed, "the probe says nothing of it, so nobody knows" + troubled(e.Trouble)
	}
	return Proved, strings.Join(said, " | ")
}
