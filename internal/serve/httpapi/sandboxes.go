package httpapi

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// DefaultPolicy is in force where none was given: nothing may be installed.
const DefaultPolicy = "name: default\npackages:\n  default: deny\n"

// sandboxRoutes are about sandboxes and their life.
type sandboxRoutes struct{ *desk }

func (s sandboxRoutes) createSandbox(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	var body api.CreateSandbox
	if err := readLarge(r, &body, maxCreate); err != nil {
		return err
	}
	if s.cfg.Sandboxes == nil {
		return errNotWired
	}
	release, err := s.takeRun(r, who, body.Run)
	if err != nil {
		return err
	}
	defer release()
	req, err := s.request(r.Context(), body, who)
	if err != nil {
		return err
	}
	if req.IdempotencyKey, err = backend.IdempotencyKey(r); err != nil {
		return err
	}
	if req.IdempotencyKey != "" && req.Tools != nil {
		return fault.Invalid("a sandbox with tools of its own takes no %s: another request's endpoints are not the first one's", api.IdempotencyHeader)
	}
	if err := backend.Promise(r.Context(), 1, body.Labels); err != nil {
		return err
	}
	sb, err := s.cfg.Sandboxes.Create(r.Context(), req)
	if err != nil {
		return err
	}
	created := s.viewSandbox(sb, nil)
	if s.cfg.Advisories != nil {
		if damage := s.cfg.Advisories.Damage(); damage != nil {
			created.Notes = append(slices.Clone(created.Notes), damage.Error())
		}
	}
	return writeJSON(w, r, http.StatusCreated, created)
}

// request is what the manager is asked for. A request that a token may not make is refused here, before anything is looked at.
func (s sandboxRoutes) request(ctx context.Context, body api.CreateSandbox, who caller) (sandbox.Request, error) {
	if err := checkCreate(body, who); err != nil {
		return sandbox.Request{}, err
	}
	var chosen chosenPolicy
	var err error
	if !inherits(body, who) {
		if chosen, err = s.policyFor(ctx, body.Policy, who); err != nil {
			return sandbox.Request{}, err
		}
	}
	req := sandbox.Request{
		Run: body.Run, Task: body.Task, Template: body.Template, Engine: body.Isolation + body.Engine,
		Policy: chosen.policy, PolicySource: chosen.source, PolicyText: chosen.text, MadeFrom: chosen.from,
		Env: body.Env, Workdir: body.Workdir, Linger: body.Linger, Plan: body.Plan,
		Snapshot: body.Snapshot, Labels: body.Labels, Owner: who.ownerOf(),
		User: who.name, HostUID: who.uid, HostGID: who.gid,
	}
	if req.Lifetime, err = lifetime(body.Lifetime); err != nil {
		return sandbox.Request{}, err
	}
	if who.token != nil && len(body.Lockfiles) > 0 && chosen.policy.Lockfiles().Trust {
		return sandbox.Request{}, fault.New(fault.ErrForbidden,
			"the policy trusts its lockfiles (packages.lockfile.trust), so a token can't bring them: it would write its own permission")
	}
	if chosen.policy != nil {
		if req.Lock, err = s.readLockfiles(ctx, body, who, chosen.policy); err != nil {
			return sandbox.Request{}, err
		}
	}
	if body.Home != nil {
		req.Home, req.Keeps = agenthome.Home{UID: who.uid, Name: body.Home.Name}, body.Home.Keeps
		if err := agenthome.CheckName(body.Home.Name); err != nil {
			return req, err
		}
	}
	if req.Tools, req.Env, err = ownTools(body, who); err != nil {
		return req, err
	}
	for _, m := range body.Mounts {
		req.Mounts = append(req.Mounts, mountpolicy.Mount(m))
	}
	return req, nil
}

// readLockfiles reads the lockfiles of the request under the policy's rules; nil: none.
func (s sandboxRoutes) readLockfiles(ctx context.Context, body api.CreateSandbox, who caller, p *policy.Policy) (*lockfile.Given, error) {
	var sources []lockfile.Source
	for _, f := range body.Lockfiles {
		if !filepath.IsAbs(f.Source) || filepath.Clean(f.Source) != f.Source {
			return nil, fault.Invalid("the lockfile %q must be named by its absolute path", f.Source)
		}
		if err := s.checkSeen(ctx, who, "lockfile", f.Source, f.Document); err != nil {
			return nil, err
		}
		sources = append(sources, lockfile.Source{Name: f.Source, Data: f.Document})
	}
	return lockfile.Give(body.Policy.Source, p.Lockfiles(), policy.LockMode(body.LockMode), sources)
}

func (s sandboxRoutes) getSandbox(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	commands, err := s.cfg.Sandboxes.Commands(r.Context(), sb.Info().ID)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, s.viewSandbox(sb, commands))
}

func (s sandboxRoutes) destroySandbox(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	if err := s.cfg.Sandboxes.Destroy(r.Context(), sb.Info().ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// viewSandbox returns a sandbox as clients are shown it.
func (d *desk) viewSandbox(sb *sandbox.Sandbox, commands []keeper.Command) api.Sandbox {
	info := sb.Info()
	state, exit := sb.State()
	v := api.Sandbox{
		ID: info.ID, Run: info.Run, Task: info.Task, State: string(state), Template: info.Template,
		Engine: info.Engine, Policy: info.PolicyDigest, PolicyName: sb.PolicyName(), Created: info.Created,
		Notes: info.Notes, Missing: info.Missing, Linger: info.Linger,
		Lifetime: viewLifetime(sb.Lifetime()), Labels: info.Labels, Token: info.Owner.Token,
		Snapshot: info.Snapshot, Parent: info.Parent, Ends: sb.Ends(), Home: info.Home.Name,
	}
	if exit != nil {
		v.Ended = exit.Reason
	}
	if stuck := sb.Stuck(); stuck.Tries > 0 {
		v.Stuck = &api.Stuck{Tries: stuck.Tries, Since: stuck.Since.UTC(), Next: stuck.Next.UTC()}
	}
	if info.Owner.Token != "" && d.cfg.Tokens != nil {
		if of, err := d.cfg.Tokens.Get(info.Owner.Token); err == nil {
			v.TokenName = of.Name
		}
	}
	for _, c := range commands {
		v.Commands = append(v.Commands, viewCommand(c))
	}
	return withWaits(v, sb)
}

func viewCommand(c keeper.Command) api.Command {
	v := api.Command{ID: c.ID, Argv: c.Argv, Started: c.Started, Terminal: c.Terminal, Output: c.Offset}
	if e := c.Exit; e != nil {
		v.Exit = &api.Exit{
			Code: e.Code, Signal: e.Signal, TimedOut: e.TimedOut, Error: e.Error, Claimed: e.Claimed,
			StdoutBytes: e.StdoutBytes, StderrBytes: e.StderrBytes, Truncated: e.Truncated,
		}
	}
	return v
}

func (s commandRoutes) startCommand(w http.ResponseWriter, r *http.Request) error {
	var body api.StartCommand
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.TimeoutMS < 0 || body.CapBytes < 0 {
		return fault.Invalid("timeout_ms and cap_bytes can't be negative")
	}
	c := sandbox.Command{
		Argv: body.Argv, Env: body.Env, Dir: body.Dir, User: body.User, Stdin: body.Stdin,
		Timeout: milliseconds(body.TimeoutMS), CapBytes: body.CapBytes, Code: body.Code,
	}
	if body.Refused != nil {
		if body.Refused.Rule == "" || body.Refused.Reason == "" {
			return fault.Invalid("refused needs the rule that refuses, and the reason")
		}
		c.Refused = &admission.Refused{Rule: body.Refused.Rule, Reason: body.Refused.Reason}
	}
	if body.Rows > 0 && body.Cols > 0 {
		c.PTY = &channel.WindowSize{Rows: body.Rows, Cols: body.Cols}
	}
	if _, err := s.ownAwake(r); err != nil {
		return err
	}
	if err := backend.Promise(r.Context(), 1, body); err != nil {
		return err
	}
	started, err := s.cfg.Sandboxes.Start(r.Context(), r.PathValue("id"), c)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusCreated, viewCommand(started))
}

func (s commandRoutes) getCommand(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.ownSandbox(r); err != nil {
		return err
	}
	commands, err := s.cfg.Sandboxes.Commands(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	for _, c := range commands {
		if c.ID == r.PathValue("cmd") {
			return writeJSON(w, r, http.StatusOK, viewCommand(c))
		}
	}
	return fault.New(fault.ErrNotFound, "there is no command %q in the sandbox %s", r.PathValue("cmd"), r.PathValue("id"))
}
