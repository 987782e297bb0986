package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxOwners bounds the sandboxes whose owners are kept in mind.
const maxOwners = 10_000

// owners keeps in mind which tokens were found to own sandboxes or not, also of those that
// are gone. A sandbox never changes its owner.
type owners struct {
	mu    sync.Mutex // guards found
	found map[ownership]bool
}

type ownership struct{ sandbox, token string }

func (o *owners) getOwnership(of ownership) (owns, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	owns, known = o.found[of]
	return owns, known
}

func (o *owners) putOwnership(of ownership, owns bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found == nil || len(o.found) >= maxOwners {
		o.found = map[ownership]bool{}
	}
	o.found[of] = owns
}

// ownsSandbox reports whether a sandbox is or was a token's, as the log says it, also after whose
// it was is erased there. One that is not on record is nobody's, and so is one that stood in
// for another.
func (s *desk) ownsSandbox(ctx context.Context, token, sandbox string) (bool, error) {
	if s.cfg.Sandboxes != nil {
		if sb, err := backend.Find(s.cfg.Sandboxes, sandbox, backend.HostViewer); err == nil {
			return backend.TokenViewer(token)(sb.Info()), nil
		}
	}
	of := ownership{sandbox, token}
	if owns, known := s.owners.getOwnership(of); known {
		return owns, nil
	}
	for began, err := range s.recordsOfBegins(ctx, "sandbox", sandbox) {
		if err != nil {
			return false, err
		}
		if began.Sandbox == sandbox {
			owns := s.ownsBegan(began, token)
			s.owners.putOwnership(of, owns)
			return owns, nil
		}
	}
	return false, nil
}

// ownsBegan reports whether the sandbox of the record of a beginning was a token's own.
func (s *desk) ownsBegan(began audit.Record, token string) bool {
	return began.Detail[admission.DetailStandsIn] == "" && s.cfg.OwnerKeys.Owns(began, token)
}

// recordsOfBegins returns the records of the beginnings of sandboxes whose field ("run",
// "sandbox") has a value.
func (s *desk) recordsOfBegins(ctx context.Context, field, value string) func(func(audit.Record, error) bool) {
	outcomes := []audit.Outcome{audit.Started, audit.Restored}
	filter := audit.Filter{Kinds: []audit.Kind{audit.KindSandbox}, Outcomes: outcomes}
	if field == "run" {
		filter.Run = value
	} else {
		filter.Sandbox = value
	}
	if s.cfg.Audit.Index == nil {
		return s.cfg.Log.Records(ctx, filter)
	}
	return func(yield func(audit.Record, error) bool) {
		var seqs []uint64
		err := s.cfg.Audit.Index.View(ctx, func(v *index.View) (err error) {
			seqs, _, err = v.Select(ctx, index.Filter{Where: map[string][]string{
				field: {value}, "kind": {string(audit.KindSandbox)}, "outcome": {string(audit.Started), string(audit.Restored)},
			}})
			return err
		})
		if err != nil {
			yield(audit.Record{}, err)
			return
		}
		if len(seqs) == 0 {
			return
		}
		for r, err := range s.cfg.Log.Records(ctx, audit.Filter{Seqs: seqs}) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// ownRun refuses a run that is not the caller's: fault.ErrNotFound, as one that
// there is not. A run is a token's if all its sandboxes are.
func (s *desk) ownRun(r *http.Request, run string) error {
	who, err := callerOf(r.Context())
	if err != nil || who.seesAll() {
		return err
	}
	has, others, err := s.ownershipOfRun(r.Context(), run, who.token.ID)
	if err != nil {
		return err
	}
	if !has || others {
		return fault.New(fault.ErrNotFound, "there is no run %q", run)
	}
	return nil
}

// taking are the runs for which sandboxes are being made: they are on no record yet,
// and another token that asks for the same run must find them all the same.
type taking struct {
	mu   sync.Mutex // guards runs
	runs map[string]takers
}

// takers are a run's callers: one token ("" is the host's), some requests.
type takers struct {
	token string
	count int
}

// takeRun reports whether the run is nobody's but the token's now; release must be
// called then.
func (k *taking) takeRun(run, token string) (release func(), ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.runs[run]
	if now.count > 0 && now.token != token {
		return nil, false
	}
	if k.runs == nil {
		k.runs = map[string]takers{}
	}
	k.runs[run] = takers{token: token, count: now.count + 1}
	return func() { k.releaseRun(run) }, true
}

func (k *taking) releaseRun(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.runs[run]
	now.count--
	if k.runs[run] = now; now.count == 0 {
		delete(k.runs, run)
	}
}

// takeRun refuses a token's request for a run that has sandboxes of others: what a
// person approved for that run would be the token's, too, whatever the token may do. release is to be called
// when the sandbox is there, or is not.
func (s *desk) takeRun(r *http.Request, who caller, run string) (release func(), err error) {
	if run == "" {
		return func() {}, nil
	}
	release, free := s.taking.takeRun(run, who.ownerOf().Token)
	if who.token == nil {
		if !free {
			release = func() {}
		}
		return release, nil
	}
	taken := fault.New(fault.ErrConflict, "the run id %q is taken; give none, and the run gets one of its own", run)
	if !free {
		return nil, taken
	}
	_, others, err := s.ownershipOfRun(r.Context(), run, who.token.ID)
	if err == nil && others {
		err = taken
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// ownershipOfRun tells whether a run has sandboxes or calls of the token, and of others; with others, has may not be all that
// there is. A record of it that is not known to be the token's is another's: a call has no sandbox that begins,
// and where a segment of the log is elsewhere a beginning is not here. The log is read in the token's turn.
func (s *desk) ownershipOfRun(ctx context.Context, run, token string) (has, others bool, err error) {
	if s.cfg.Sandboxes != nil {
		own := backend.TokenViewer(token)
		for _, sb := range backend.Listed(s.cfg.Sandboxes, backend.HostViewer) {
			if info := sb.Info(); info.Run == run {
				has, others = has || own(info), others || !own(info)
			}
		}
	}
	if s.cfg.Calls != nil && slices.Contains(s.cfg.Calls.Runs(), run) { // it may be on no record yet
		others = true // a token's calls have runs of their own, that nobody knows while they go on
	}
	if others {
		return has, others, nil
	}
	ctx, leave, err := s.turnToRead(ctx, token)
	if err != nil {
		return false, false, err
	}
	defer leave()
	boxes := map[string]bool{} // by id, whether it is the token's
	for began, err := range s.recordsOfBegins(ctx, "run", run) {
		if err != nil {
			return false, false, err
		}
		if began.Run == run {
			boxes[began.Sandbox] = s.ownsBegan(began, token)
			if has = has || boxes[began.Sandbox]; !boxes[began.Sandbox] {
				return has, true, nil // the rest tells nothing else
			}
		}
	}
	tokens, err := s.tokensIn(ctx, run)
	if err != nil {
		return false, false, err
	}
	for box, by := range tokens {
		if _, known := boxes[box]; !known {
			has, others = has || by == token, others || by != token
		}
	}
	return has, others, nil
}

// tokensIn are the tokens of what is on record of a run, by the ids of its sandboxes and calls; "" is the
// host's, or is not known.
func (s *desk) tokensIn(ctx context.Context, run string) (map[string]string, error) {
	tokens := map[string]string{}
	if s.cfg.Audit.Index != nil {
		return tokens, s.cfg.Audit.Index.View(ctx, func(v *index.View) (err error) {
			tokens, err = v.TokensIn(ctx, run)
			return err
		})
	}
	for r, err := range s.cfg.Log.Records(ctx, audit.Filter{Run: run}) {
		if err != nil {
			return nil, err
		}
		if r.Run == run && r.Sandbox != "" {
			tokens[r.Sandbox] = cmp.Or(tokens[r.Sandbox], r.OwnerToken())
		}
	}
	return tokens, nil
}
