package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/vouched"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// lockTarget is the file of --lock.
type lockTarget struct {
	shown  string
	path   string
	entry  hostpath.Entry // where it was found
	exists bool
	yes    bool
}

// newLockTarget checks the file of --lock before the resolver runs: its name
// says the format, and one that is there needs somebody who agrees to lose it.
func newLockTarget(cwd, shown string, resolver installer.Resolver, yes bool) (*lockTarget, error) {
	t := &lockTarget{shown: shown, path: shown, yes: yes}
	if !filepath.IsAbs(t.path) {
		t.path = filepath.Join(cwd, t.path)
	}
	if err := resolver.CheckLockName(shown); err != nil {
		return nil, err
	}
	var err error
	t.entry, err = findNamed(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Invalid("--lock %s: its folder %s", shown, because(err))
	}
	if _, other := errors.AsType[*hostpath.TypeError](err); other {
		return nil, fault.Invalid("--lock %s is not a file", shown)
	}
	if err != nil {
		return nil, fault.Invalid("--lock %s %s", shown, because(err))
	}
	t.exists = !t.entry.File.IsZero()
	if t.exists && !yes && !ui.CanAsk() {
		return nil, fault.Invalid("--lock %s exists; add --yes to overwrite it", shown)
	}
	return t, nil
}

// writeLock writes the lockfile, unless the plan has what the gateway never
// showed: nobody could vouch for that.
func (p *planner) writeLock(ctx context.Context, made api.Plan, docs installer.Documents, result installer.Result) error {
	for _, r := range made.Releases {
		if r.Effect == plan.EffectError {
			p.stderr.Say("%s is not written: the plan has errors", p.lock.shown)
			return nil
		}
	}
	data, err := p.rewrite.Resolver.WriteLock(docs, result)
	if err == nil {
		data, err = withSources(data, p.lock.path, made)
	}
	if err != nil {
		return &exitError{code: exitFailure, err: err}
	}
	if p.lock.exists && !p.lock.yes && !ui.AgreesWithin(ctx, fmt.Sprintf("%s exists; overwrite it?", ui.Printable(p.lock.shown))) {
		p.stderr.Say("%s is left as it is", p.lock.shown)
		if ctx.Err() != nil { // nobody has answered
			return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the plan was given up")}
		}
		return nil
	}
	if err := p.lock.writeLockfile(data); err != nil {
		return fmt.Errorf("write %s: %w", p.lock.shown, err)
	}
	// A sandbox made it. Where an agent can't write it is noted when it is used; elsewhere somebody has to look at it.
	err = checkSeen("lockfile", p.lock.path, data)
	if unseen, is := errors.AsType[*vouched.UnseenError](err); is {
		p.stderr.Say("wrote %s, where an agent may write, or could: read it, and say so before a run is held to it: cofferdam project allow --digest %s %s", p.lock.shown, unseen.Digest, p.lock.shown)
		return nil
	}
	if err != nil {
		return err
	}
	p.stderr.Say("wrote %s; hold a run to it with: cofferdam run --lockfile %s", p.lock.shown, p.lock.shown)
	return nil
}

// withSources adds to what a lockfile pins the digests of the sources of which it is built apart:
// by these a run is held to it, whatever comes of the next build.
func withSources(lock []byte, file string, made api.Plan) ([]byte, error) {
	pinner, ecosystem, can := pinnerOf(file)
	for _, r := range made.Releases {
		if !can || r.Kind != string(policy.KindBuilt) || strings.Contains(string(lock), strings.TrimPrefix(r.Digest, "sha256:")) {
			continue
		}
		ref, err := pkgref.New(ecosystem, r.Name, r.Version)
		if err != nil {
			return nil, err
		}
		if lock, err = pinner.Pin(lock, ref, []string{r.Digest}); err != nil {
			return nil, err
		}
	}
	return lock, nil
}

// writeLockfile puts the file there whole or not at all. One that came to be there
// meanwhile is left alone.
func (t *lockTarget) writeLockfile(data []byte) error {
	if !t.exists {
		return t.entry.Create(data, 0o644)
	}
	return t.entry.Replace(data)
}
