package copies

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// Wanted is what a copy is to be, where that is not its source's to say.
type Wanted struct {
	ID, Run        string
	Token          string // whose it is; "": a caller's on the Unix socket
	Root           engine.Root
	TemplateMounts []engine.Mount
	PolicyMounts   []mountpolicy.Mount
	Limits         engine.Limits // the policy's
}

// Spec is the spec of a copy: its source's, with an id of its own, and with limits that
// are its policy's where these are lower.
func (l *Library) Spec(ctx context.Context, from *Origin, w Wanted) (engine.Spec, error) {
	spec := from.Made.Spec
	spec.ID, spec.Labels, spec.Root = w.ID, map[string]string{"run": w.Run}, w.Root
	spec.Share = w.Token
	spec.Hostname = w.ID // copies differ in that from their source, and from each other
	granted, err := l.granted(w)
	if err != nil {
		return spec, err
	}
	shown, hidden, err := l.mounts(ctx, spec.Mounts, w.TemplateMounts, granted)
	if err != nil {
		return spec, err
	}
	if spec.Mounts, err = hideAlso(shown, hidden, from.Contents); err != nil {
		return spec, err
	}
	for _, want := range w.PolicyMounts {
		if !slices.ContainsFunc(spec.Mounts, func(has engine.Mount) bool {
			return has.Destination == want.Destination && (has.ReadOnly || want.ReadWrite)
		}) {
			return spec, fault.Invalid("the policy mounts %s, and the sandbox is made from a copy without that; a copy has the mounts of its source", want.Destination)
		}
	}
	spec.Limits, err = lowerLimits(spec.Limits, w.Limits, from)
	return spec, err
}

// lowerLimits returns the lower ones of two. A limit that can't hold the copy is refused.
func lowerLimits(source, asked engine.Limits, from *Origin) (engine.Limits, error) {
	lower := engine.Limits{
		CPU: min(source.CPU, asked.CPU), MemoryBytes: min(source.MemoryBytes, asked.MemoryBytes),
		DiskBytes: min(source.DiskBytes, asked.DiskBytes), Pids: min(source.Pids, asked.Pids),
	}
	room, what := lower.DiskBytes, "of disk"
	if from.Contents == engine.ContentsMemory {
		room, what = lower.MemoryBytes+lower.DiskBytes, "of memory and disk"
	}
	if from.Bytes > room {
		return lower, fault.Invalid("the policy gives %d MiB %s, and the copy has %d MiB", room>>20, what, from.Bytes>>20)
	}
	return lower, nil
}

// granted are the host's directories that a copy of a token's may show: those of its
// policy, which may be another than its source's, or have changed. nil: whatever its
// source showed.
func (l *Library) granted(w Wanted) ([]mountpolicy.Mount, error) {
	if w.Token == "" {
		return nil, nil
	}
	all := []mountpolicy.Mount{}
	for _, asked := range w.PolicyMounts {
		c, err := l.cfg.Rules.Check(asked)
		if err != nil {
			return nil, err
		}
		c.Close()
		all = append(all, c.Mount)
	}
	return all, nil
}

// hideAlso returns what a source's mounts showed, with what ignore files hide now over it: a copy is a sandbox that
// begins now. A copy of memory has the mounts that it had, so that such a copy is refused that would show more.
func hideAlso(shown, hidden []engine.Mount, contents engine.Contents) ([]engine.Mount, error) {
	for _, now := range hidden {
		if slices.ContainsFunc(shown, func(had engine.Mount) bool { return had.Destination == now.Destination && !had.Around.IsZero() }) {
			continue
		}
		if contents == engine.ContentsMemory {
			return nil, fault.New(fault.ErrConflict, "%s is hidden by an ignore file now, and was not when the source of the copy was made, whose memory goes on with what it was shown; make a sandbox without a copy, or a snapshot of files alone", now.Destination)
		}
		shown = append(shown, now)
	}
	return shown, nil
}

// mounts checks that what a source's mounts showed may still be shown, and is
// in the same place. hidden is what ignore files hide in it now.
func (l *Library) mounts(ctx context.Context, source, ofTemplate []engine.Mount, granted []mountpolicy.Mount) (shown, hidden []engine.Mount, err error) {
	shown = slices.Clone(source)
	may := mountpolicy.NewComparing()
	for i, mount := range shown {
		switch {
		case mount.Source == "" || mount.Source == l.cfg.Rules.EmptyFile || slices.Contains(ofTemplate, mount):
			continue
		case mount.Destination == mountpolicy.AgentPlace:
			shown[i].Source = l.cfg.AgentDir
			continue
		case !mount.ReadOnly:
			return nil, nil, fault.New(fault.ErrConflict, "the copy is of a sandbox with the host's %s mounted read-write; there are no copies of such", mount.Source)
		}
		origin, over, err := l.showAgain(ctx, mount, granted, may)
		if err != nil {
			return nil, nil, err
		}
		hidden = append(hidden, over...)
		if shown[i].Origin = origin; mount.Origin == mount.Origin.Kind() && !mount.Origin.IsZero() {
			shown[i].Origin = mount.Origin
		}
	}
	return shown, hidden, nil
}

// showAgain checks that what a source's mount showed may be shown to a copy, and returns what it is and what is hidden in it now.
func (l *Library) showAgain(ctx context.Context, mount engine.Mount, granted []mountpolicy.Mount, may *mountpolicy.Comparing) (origin hostpath.Identity, hidden []engine.Mount, err error) {
	now, err := l.cfg.Rules.Check(mountpolicy.Mount{Source: mount.Source, Destination: mount.Destination})
	if err != nil {
		return origin, nil, err
	}
	defer now.Close()
	switch {
	case now.Source != mount.Source:
		err = fault.New(fault.ErrConflict, "%s, which the copy shows, is a link to somewhere else now", mount.Source)
	case !mount.Origin.IsZero() && !mount.Origin.IsAfterBoot(now.Origin()):
		err = fault.New(fault.ErrConflict, "%s, which the copy shows, is another file or directory now than its source was shown; put that back, or make a sandbox without a copy", mount.Source)
	case granted != nil && !slices.ContainsFunc(granted, func(g mountpolicy.Mount) bool { return g.Source == now.Source && g.Destination == now.Destination }):
		err = fault.New(fault.ErrForbidden, "the copy shows %s of the host, and its policy does not any more; make one that does not", mount.Destination)
	}
	if err != nil {
		return origin, nil, err
	}
	hidden, err = l.cfg.Rules.Hide(ctx, now, may)
	return now.Origin(), hidden, err
}
