package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// processGroups are the control groups of this installation's own processes, the gateway with
// its dialer and the keeper. One of them that a sandbox fills with memory is ended by the
// kernel and started again; the host and everybody else's processes go on.
type processGroups struct {
	groups *cgroup.Hierarchy
	limits config.Processes
	log    *slog.Logger
}

// processHierarchy is where their groups are: no engine has this parent.
func processHierarchy(state string) *cgroup.Hierarchy {
	return cgroup.New(cgroup.Config{Parent: cgroup.ParentOf(state) + "-processes", UID: os.Geteuid()})
}

// newProcessGroups tells what of the limits this host can't enforce.
func newProcessGroups(groups *cgroup.Hierarchy, limits config.Processes, log *slog.Logger) *processGroups {
	p := &processGroups{groups: groups, limits: limits, log: log}
	var missing []string
	for c := range p.groups.Missing() {
		missing = append(missing, string(c))
	}
	if slices.Sort(missing); len(missing) > 0 {
		first := cgroup.Controller(missing[0])
		log.Warn("the gateway and the keeper run without limits of "+strings.Join(missing, ", ")+"; cofferdam doctor says more", "why", p.groups.Missing()[first])
	}
	return p
}

// limitedProcess is a process in its group.
type limitedProcess struct {
	name   string
	group  *cgroup.Group // nil where there are no groups
	limits cgroup.Limits
	before cgroup.Met
}

// adoptProcess puts a process into the group of its name, which it makes or sets anew. A limit that
// this host can't enforce is left out; newProcessGroups has told.
func (p *processGroups) adoptProcess(name string, pid int, l config.ProcessLimit) (limitedProcess, error) {
	if p == nil {
		return limitedProcess{name: name}, nil
	}
	missing := p.groups.Missing()
	if len(missing) == len(cgroup.Controllers()) {
		return limitedProcess{name: name}, nil
	}
	limits := limitsOf(l)
	for c := range missing {
		switch c {
		case cgroup.Memory:
			limits.MemoryBytes = 0
		case cgroup.CPU:
			limits.Weight = 0
		case cgroup.Pids:
			limits.Pids = 0
		}
	}
	group, err := p.groups.Ensure(name, limits)
	if err == nil {
		err = group.Adopt(pid)
	}
	if err != nil {
		return limitedProcess{}, fmt.Errorf("the %s can't be given its control group: %w", name, err)
	}
	return limitedProcess{name: name, group: group, limits: limits, before: group.Counters()}, nil
}

// limitsOf are those of a configuration.
func limitsOf(l config.ProcessLimit) cgroup.Limits {
	return cgroup.Limits{MemoryBytes: int64(l.Memory), Pids: l.Tasks, Weight: l.CPUWeight}
}

// explainEnd names the limit that ended the process, if one did.
func (l limitedProcess) explainEnd(err error) error {
	if l.group == nil {
		return err
	}
	return l.explainMet(l.group.Counters(), err)
}

// explainMet explains an error by the group's counters as they are now.
func (l limitedProcess) explainMet(now cgroup.Met, err error) error {
	key := l.name
	if key == "reader" { // its limits are the gateway's
		key = "gateway"
	}
	switch {
	case now.OOMKills > l.before.OOMKills:
		return fault.Wrap(fault.ErrUnavailable, err, "the %s reached its limit of memory, processes.%s.memory (%d bytes), and was ended", l.name, key, l.limits.MemoryBytes)
	case now.PidsRefused > l.before.PidsRefused:
		return fault.Wrap(fault.ErrUnavailable, err, "the %s reached its limit of tasks, processes.%s.tasks (%d), and ended", l.name, key, l.limits.Pids)
	}
	return err
}

// removeGroup removes the group of a process that ends now, or has ended.
func (p *processGroups) removeGroup(ctx context.Context, name string) {
	if p == nil { // the daemon ends before it had any
		return
	}
	group, err := p.groups.Open(name)
	if err == nil {
		err = group.Remove(ctx)
	}
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		p.log.WarnContext(ctx, "a control group is left, which the next daemon uses again", "of", name, "err", err)
	}
	p.groups.Tidy()
}
