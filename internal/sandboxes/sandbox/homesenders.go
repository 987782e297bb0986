package sandbox

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
)

// endSenders ends those that could have sent what a sandbox has in messages, or have taken the socket that is in its network and that
// nobody shows, as one that accepted its connection can. It is ended for them: the kernel does not say who it was, and whoever hides something behind a socket of another sandbox would go on with the next one.
func (r *remover) endSenders(ctx context.Context, receiver *Sandbox, kept agenthome.Kept) {
	table, _ := hostpath.ReadTable() // without it one directory under two names is taken for two
	shown := r.shownIn(receiver)
	for _, s := range r.registry.listSandboxes() {
		if state, _ := s.State(); s == receiver || state != Running && state != Snapshotting || r.hasOwnKernel(ctx, s.info.Engine) {
			continue
		}
		if at := sharedBy(table, shown, r.shownIn(s)); at != "" {
			r.failFor(s, fault.New(fault.ErrExhausted, "the sandbox %s, with which it shares %.200q, is ended for %s, which took room on a disk that is short: nobody sees who sent or took them", receiver.info.ID, at, kept.Unseen))
		}
	}
}

// failFor ends a sandbox by itself, for a reason; it returns at once.
func (r *remover) failFor(s *Sandbox, why error) {
	r.background.doInBackground(func() { r.failSandbox(r.background.ctx, s, engine.Exit{Code: lostCode, Reason: why.Error()}) })
}

// shownIn are a sandbox's mounts. There are none of one that an older version made.
func (r *remover) shownIn(s *Sandbox) []engine.Mount {
	kept, err := r.blueprints.Load(s.info.ID)
	if err != nil {
		return nil
	}
	return kept.Spec.Mounts
}

// sharedBy is a path of the host that two sandboxes show, of which one may write there: it can make a socket, and the other one
// connect. "" if there is none.
func sharedBy(table hostpath.Table, one, other []engine.Mount) string {
	for _, a := range one {
		for _, b := range other {
			if a.Source == "" || b.Source == "" || a.ReadOnly && b.ReadOnly {
				continue
			}
			if _, is := table.NameUnder(a.Source, b.Source); is {
				return a.Source
			}
			if _, is := table.NameUnder(b.Source, a.Source); is {
				return b.Source
			}
		}
	}
	return ""
}
