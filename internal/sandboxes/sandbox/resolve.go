package sandbox

import (
	"cmp"
	"context"
	"maps"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
)

// leaseSnapshot finds the snapshot that a request names and has it lie plain, which takes long
// if it was compressed; nil if it names none.
func (l *planner) leaseSnapshot(ctx context.Context, req Request) (*snapshots.Lease, error) {
	if req.Snapshot == "" || req.from != nil {
		return nil, nil //nolint:nilnil // most sandboxes are made from no snapshot
	}
	if req.Template != "" || req.Engine != "" || len(req.Mounts) > 0 {
		return nil, fault.Invalid("a sandbox that is made from a snapshot has its template, engine and mounts; the request must not have others")
	}
	return l.copies.Lease(ctx, req.Owner.Token, req.Snapshot)
}

// resolveRequest fills a request with what is not its own to say, if it is for a copy:
// template, engine, mounts and account are those of the source, and so are policy
// and lockfiles unless it has its own. The caller releases its from; the lease of the
// snapshot, if there is one, is part of that.
func (l *planner) resolveRequest(ctx context.Context, req Request, lease *snapshots.Lease) (Request, error) {
	if req.from == nil {
		if lease == nil {
			return req, nil
		}
		var err error
		if req.from, err = l.copies.Open(ctx, lease); err != nil {
			lease.Release()
			return req, err
		}
	}
	filled, err := l.fillFromSource(req)
	if err != nil {
		req.from.Release()
		return req, err
	}
	return filled, nil
}

// fillFromSource has a copy be what its source is, where the request says nothing.
func (l *planner) fillFromSource(req Request) (Request, error) {
	from := req.from
	if req.Plan {
		return req, fault.Invalid("a plan is made in a sandbox of its own, not in a copy")
	}
	req.Engine, req.Template, req.Account = from.Of.Engine, from.Of.Template, from.Of.Account
	workdir, env := from.Of.Workdir, map[string]string{}
	maps.Copy(env, from.Made.Env)
	if b := from.Built; b != nil {
		workdir, req.Account.Default = cmp.Or(b.Workdir, workdir), b.User
		maps.Copy(env, b.Env)
	}
	maps.Copy(env, req.Env)
	req.Env, req.Workdir = env, cmp.Or(req.Workdir, workdir)
	if req.Narrowing.IsZero() {
		req.Narrowing = from.Narrowing
	}
	if req.Policy == nil {
		var err error
		if req.Policy, req.PolicyText, err = l.documents.policyFrom(from.Of.PolicySource, from.Of.PolicyDigest); err != nil {
			return req, err
		}
		req.PolicySource = from.Of.PolicySource
	}
	if req.Lock == nil && from.Of.LockDigest != "" { // a lockfile narrows, so it is not lost on the way
		given, err := l.documents.givenLock(from.Of.LockDigest)
		if err != nil {
			return req, err
		}
		req.Lock = given
	}
	return req, nil
}
