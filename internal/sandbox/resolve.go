package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/template"
)

// lease finds the snapshot that a request names and has it lie plain, which takes long
// if it was compressed; nil if it names none.
func (m *Manager) lease(ctx context.Context, req Request) (*snapshots.Lease, error) {
	if req.Snapshot == "" || req.from != nil {
		return nil, nil //nolint:nilnil // most sandboxes are made from no snapshot
	}
	if req.Template != "" || req.Engine != "" || len(req.Mounts) > 0 {
		return nil, fault.Invalid("a sandbox that is made from a snapshot has its template, engine and mounts; the request must not have others")
	}
	return m.copies.Lease(ctx, req.Owner.Token, req.Snapshot)
}

// resolve fills a request with what is not its own to say, if it is for a copy:
// template, engine, mounts and account are those of the source, and so are policy
// and lockfiles unless it has its own. The caller releases req.from; the lease of the
// snapshot, if there is one, is part of that.
func (m *Manager) resolve(ctx context.Context, req Request, lease *snapshots.Lease) (Request, error) {
	if req.from == nil {
		if lease == nil {
			return req, nil
		}
		var err error
		if req.from, err = m.copies.Open(ctx, lease); err != nil {
			lease.Release()
			return req, err
		}
	}
	filled, err := m.fill(req)
	if err != nil {
		req.from.Release()
		return req, err
	}
	return filled, nil
}

func (m *Manager) fill(req Request) (Request, error) {
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
		if req.Policy, req.PolicyText, err = m.policyOf(from.Of); err != nil {
			return req, err
		}
		req.PolicySource = from.Of.PolicySource
	}
	if req.Lock == nil && from.Of.LockDigest != "" { // a lockfile narrows, so it is not lost on the way
		given, err := m.givenLock(from.Of.LockDigest)
		if err != nil {
			return req, err
		}
		req.Lock = given
	}
	return req, nil
}

// policyOf reads the policy of a sandbox as it was given.
func (m *Manager) policyOf(of Info) (*policy.Policy, []byte, error) {
	text, err := m.PolicyText(of.PolicyDigest)
	if err != nil {
		return nil, nil, err
	}
	p, err := policy.Parse(of.PolicySource, text)
	if err != nil {
		return nil, nil, err
	}
	if p.Digest() != of.PolicyDigest {
		return nil, nil, fault.New(fault.ErrConflict, "the kept policy %s has another digest now", of.PolicyDigest)
	}
	return p, text, nil
}

// givenLock reads the kept lockfiles of a digest as they were given.
func (m *Manager) givenLock(digest string) (*lockfile.Given, error) {
	if _, err := m.loadLock(digest); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(m.lockPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the lockfiles %s are not kept any more", digest)
	}
	given := &lockfile.Given{}
	return given, json.Unmarshal(data, given)
}

// templateOf finds a request's template; of a copy it is the one that its source
// was made from, in the same generation.
func (m *Manager) templateOf(ctx context.Context, req Request) (template.Template, error) {
	if req.from == nil {
		return m.cfg.Templates.Get(ctx, m.templateName(req))
	}
	return m.cfg.Templates.Generation(ctx, req.from.Of.Template, req.from.Of.Digest)
}
