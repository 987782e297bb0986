package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

const (
	agentUID      = 1000
	defaultNoFile = 65536
	bootTimeout   = 30 * time.Second
)

// guestCaller are told who they are, what time it is, and when time counts.
type guestCaller struct {
	cfg        *Config
	blueprints *copies.Blueprints
	rules      mountpolicy.Rules
}

// identity is what a guest is told of itself.
type identity struct {
	info      Info
	template  template.Template
	env       map[string]string // the request's
	variables map[string]string // with placeholders
	names     []string
	caPEM     []byte
	workspace policy.Workspace // the policy's directory inside
	proxy     bool             // the policy wants one
	pids      int
	owned     []string // below the home, on the way to what is kept there
	polls     bool     // no event tells of what the host changes in a mount
}

// commandUser is who runs commands: the template's user, or the one asked for in its place.
func (i identity) commandUser() channel.User {
	user := channel.User{Name: i.template.User, UID: agentUID, GID: agentUID, Home: i.template.Home}
	if asked := i.info.Account.Name; asked != "" {
		user.Name = asked
	}
	if asked := i.info.Account.Home; asked != "" {
		user.Home = asked
	}
	return user
}

// checkSameShown refuses to go on where the paths of the host that a sandbox shows are not those that it
// was made with. What counts is what the engine opens; here the sandbox stays paused, and
// who asks is told why. A sandbox of an older version has no blueprint.
func (g *guestCaller) checkSameShown(ctx context.Context, info Info) error {
	kept, err := g.blueprints.Load(info.ID)
	if errors.Is(err, fault.ErrConflict) {
		return nil // an older version kept none; the engine refuses what it has no record of
	}
	if err != nil {
		return err
	}
	if err := engine.CheckSources(kept.Spec.Mounts); err != nil {
		return err
	}
	if err := g.rules.CheckStill(kept.Spec.Mounts, info.TemplateMounts); err != nil {
		return err
	}
	return mountpolicy.CheckGuards(ctx, kept.Spec.Mounts, g.cfg.OwnPrograms)
}

// mayShow tells whether the host has nothing in what a sandbox shows by now that nobody may be
// shown. A sandbox of an older version has no blueprint.
func (g *guestCaller) mayShow(info Info) error {
	kept, err := g.blueprints.Load(info.ID)
	if errors.Is(err, fault.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	return g.rules.CheckStill(kept.Spec.Mounts, info.TemplateMounts)
}

// commandEnvironment is what commands find, beyond what the agent gives all of them.
func (g *guestCaller) commandEnvironment(who identity) map[string]string {
	// /tmp is memory and small; a big download belongs on the disk.
	env := map[string]string{"TMPDIR": "/var/tmp"}
	if who.polls {
		maps.Copy(env, pollingEnv())
	}
	if len(who.info.WritableMounts) > 0 {
		env["UV_LINK_MODE"] = "copy" // into the host's directory there is no link, and uv says at length that it copies
	}
	maps.Copy(env, g.cfg.ClientSettings)
	maps.Copy(env, who.template.Env)
	maps.Copy(env, g.cfg.ClientEnv())
	maps.Copy(env, who.env)
	maps.Copy(env, who.variables)
	env["COFFERDAM_RUN"] = who.info.Run
	if home := who.info.Account.Home; home != "" {
		env["HOME"] = home
	}
	return env
}

// configure gives a guest its identity.
func (g *guestCaller) configure(ctx context.Context, who identity) error {
	id := who.info.ID
	_, err := g.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: id, Env: g.commandEnvironment(who), CAPEM: who.caPEM, Names: who.names,
		MachineID: machineID(id), User: who.commandUser(),
		Seed: newSeed(), Now: time.Now().UnixNano(),
		Workspace: who.workspace.Path, WorkspaceReadOnly: who.workspace.ReadOnly, Proxy: who.proxy, Owned: who.owned,
		Limits: channel.ExecLimits{NProc: who.pids, NoFile: defaultNoFile},
	}})
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox's agent did not come up")
	}
	faultpoint.Hit(faultpoint.CreateConfigured)
	return nil
}

// configureAnew gives the guest its identity that was started on a sandbox's files.
func (g *guestCaller) configureAnew(ctx context.Context, s *Sandbox) error {
	who, kept, err := g.identityOf(ctx, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if err := g.configure(ctx, who); err != nil {
		return err
	}
	return g.blueprints.Keep(s.info.ID, kept) // its agent may be of another version than the one before
}

// identityOf is what anew needs to know.
func (g *guestCaller) identityOf(ctx context.Context, s *Sandbox) (identity, copies.Blueprint, error) {
	kept, err := g.blueprints.Load(s.info.ID)
	if err != nil {
		return identity{}, kept, err
	}
	tpl, err := g.cfg.Templates.Generation(ctx, s.info.Template, s.info.Digest)
	if err != nil {
		return identity{}, kept, err
	}
	who := identity{
		info: s.info, template: tpl, env: kept.Env, variables: placeholderVariables(s.policy, s.info.Placeholders),
		workspace: s.policy.Workspace(), proxy: s.policy.NetworkProxy(), pids: kept.Spec.Limits.Pids,
		polls: missesHostEvents(s.info, engines(g.cfg.Engines).wallOf(ctx, s.info.Engine)),
	}
	who.caPEM, who.names, err = trustOf(ctx, g.cfg, s.policy, g.cfg.Door.Trusted(s.info.ID))
	return who, kept, err
}

// stopClocks tells the guest that time does not count against its commands while
// somebody decides, or that it does again. A guest that refuses has answered, with a
// fault.ErrInvalid; one whose reply can't be read has not, and is a fault.ErrUnavailable.
func (g *guestCaller) stopClocks(ctx context.Context, id string, stopped bool) error {
	_, err := g.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallHold, Hold: &channel.Hold{Stopped: stopped}})
	if keeper.Unanswered(err) && ctx.Err() == nil {
		return fault.New(fault.ErrUnavailable, "the sandbox's agent gave no answer: %v", err)
	}
	return err
}

// wakeGuest tells a guest that was frozen what time it is, and gives it randomness that
// no copy of its image has.
func (g *guestCaller) wakeGuest(ctx context.Context, id string) error {
	_, err := g.cfg.Keeper.Call(ctx, id, channel.Call{
		Kind: channel.CallResume, Resume: &channel.Resume{Now: time.Now().UnixNano(), Seed: newSeed()},
	})
	return err
}

// meta is what the keeper hands back of a sandbox.
type meta struct {
	Info
	// Waiting is what the sandbox is frozen for, written before the freeze begins.
	Waiting *suspend.Saved `json:"waiting,omitempty"`
}

// rememberInfo has the keeper hand back to the next daemon what is known of a sandbox;
// all of it but the labels, which may be more than the keeper takes: the journal has
// those.
func (g *guestCaller) rememberInfo(ctx context.Context, info Info, saved *suspend.Saved) error {
	info.Labels = nil
	data, err := json.Marshal(meta{Info: info, Waiting: saved})
	if err != nil {
		return err
	}
	return g.cfg.Keeper.SetMeta(ctx, info.ID, data)
}

// machineID is what /etc/machine-id has: another one for each sandbox, and for a
// member of the pool the one that it will be claimed with.
func machineID(sandbox string) string {
	sum := sha256.Sum256([]byte("machine-id of " + sandbox))
	return hex.EncodeToString(sum[:16])
}

func newSeed() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails: it ends the process instead
	return b
}
