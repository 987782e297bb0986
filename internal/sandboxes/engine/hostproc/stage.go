package hostproc

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// DefaultStageLimits bound the programs that work on one instance's files for it while it stands
// still, all of them together. They are far above what packing needs, whose own budgets are some
// ten megabytes (package layer); runsc and runc take some fifty.
func DefaultStageLimits() cgroup.Limits {
	return cgroup.Limits{MemoryBytes: 512 << 20, Pids: 256, Weight: 100}
}

// LimitStages sets what stages of its instances may take; the zero value leaves the default. It
// is called before the first.
func (h *Home) LimitStages(l cgroup.Limits) *Home {
	if l != (cgroup.Limits{}) {
		h.stages = l
	}
	return h
}

// staging is the control group of the programs of one freeze.
type staging struct {
	id     string
	group  *cgroup.Group // nil where there are no groups
	limits cgroup.Limits
	before cgroup.Met
}

// beginStaging makes the group.
func (h *Home) beginStaging(id string) (staging, error) {
	limits, ok := h.stageLimits()
	if !ok {
		return staging{id: id}, nil
	}
	h.stagingMu.Lock()
	defer h.stagingMu.Unlock()
	group, err := h.groups().EnsureStage(id, limits)
	if err != nil {
		return staging{}, fault.Wrap(fault.ErrUnavailable, err, "what works on the files of sandbox %s can't be given a control group", id)
	}
	h.stagings[id]++
	return staging{id: id, group: group, limits: limits, before: group.Counters()}, nil
}

// endStaging removes the group, unless another freeze of the instance is to use it: one that
// waits for its turn has not put anything into it yet.
func (h *Home) endStaging(s staging) {
	if s.group == nil {
		return
	}
	h.stagingMu.Lock()
	defer h.stagingMu.Unlock()
	if h.stagings[s.id]--; h.stagings[s.id] > 0 {
		return
	}
	delete(h.stagings, s.id)
	s.group.Leave() // what stays because a caller gave up goes with the instance
}

// stageLimits are those that this host can enforce; Controls has told which it can't. ok is
// false where there are no groups at all.
func (h *Home) stageLimits() (limits cgroup.Limits, ok bool) {
	missing := h.groups().Missing()
	limits = h.stages
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
	return limits, len(missing) < len(cgroup.Controllers())
}

// BridgeGroup is the group of a program that serves an instance as long as it lives, where the
// instance itself is in somebody else's groups; nil where there are no groups.
func (h *Home) BridgeGroup(share, id string) (*cgroup.Group, error) {
	limits, ok := h.stageLimits()
	if !ok {
		return nil, nil //nolint:nilnil // No group is a state of its own: rootless without delegation.
	}
	return h.groups().Create(share, id, limits)
}

// keepersLink is by what the keeper starts its own program.
const keepersLink = "/proc/self/exe"

// argvInGroup returns the words that have a program join the group before it is one.
func (s staging) argvInGroup(argv []string) []string {
	if s.group == nil {
		return argv
	}
	// The link is that of the keeper, which starts the program; a shell's would be the shell.
	own := []string{keepersLink, "cgroup-exec"}
	joiner := keeper.Joiner(own...)
	if argv[0] == keepersLink {
		joiner = own
	}
	return slices.Concat(joiner, s.group.Joins(), []string{"--"}, argv)
}

// explainBound names the bound that an error is of.
func (s staging) explainBound(err error) error {
	if err == nil || s.group == nil {
		return err
	}
	now := s.group.Counters()
	switch {
	case now.OOMKills > s.before.OOMKills:
		return fault.Wrap(fault.ErrConflict, err, "the files of sandbox %s take more memory to be written than processes.stage.memory allows (%d bytes), so that it was given up; remove files, or raise the limit in the configuration", s.id, s.limits.MemoryBytes)
	case now.PidsRefused > s.before.PidsRefused:
		return fault.Wrap(fault.ErrConflict, err, "the programs that write the files of sandbox %s need more tasks than processes.stage.tasks allows (%d), so that they were given up; raise the limit in the configuration", s.id, s.limits.Pids)
	}
	return err
}

// Freeze has the keeper run the steps of a freeze within limits of their own: how many files a
// guest made, how long their names are and how deep they lie costs what serves this instance,
// and nobody else. Undo is not limited: it does the same work whatever the guest has made, and
// lets the instance go on.
func (h *Home) Freeze(ctx context.Context, f keeper.Freeze) error {
	if len(f.Steps) == 0 {
		return h.keeper.Freeze(ctx, f)
	}
	s, err := h.beginStaging(f.ID)
	if err != nil {
		return err
	}
	defer h.endStaging(s)
	steps := make([][]string, 0, len(f.Steps))
	for _, argv := range f.Steps {
		steps = append(steps, s.argvInGroup(argv))
	}
	f.Steps = steps
	return s.explainBound(h.keeper.Freeze(ctx, f))
}

// explainStart names the instance's own limit where that ended what lays it out: a start runs
// within the instance's group, which is new then.
func (h *Home) explainStart(id string, err error) error {
	group, opened := h.groups().Open(id)
	if opened != nil {
		return err
	}
	switch met := group.Counters(); {
	case met.OOMKills > 0:
		return fault.Wrap(fault.ErrConflict, err, "sandbox %s takes more memory to be laid out than its own limit of memory; give it more, or a snapshot with fewer files", id)
	case met.PidsRefused > 0:
		return fault.Wrap(fault.ErrConflict, err, "sandbox %s needs more tasks to be laid out than its own limit; give it more processes", id)
	}
	return err
}
