package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/baseline"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/recovery"
)

// remover takes sandboxes away: because somebody asked for it, because their time is
// over, or because they ended by themselves.
type remover struct {
	cfg        *Config
	registry   *registry
	spans      spans
	tracker    *tracker
	keys       *keys
	inventory  *baseline.Book
	blueprints *copies.Blueprints
	documents  documents
	copies     *copies.Library
	background *background
}

// destroy ends a sandbox and takes it away; see Manager.Destroy.
func (r *remover) destroy(ctx context.Context, id string) (err error) {
	ctx, done := r.spans.beginSpan(ctx, VerbDestroy, id)
	defer func() { done(nil, "", err) }()
	s, err := r.registry.getSandbox(id)
	if err != nil {
		return err
	}
	return r.endSandbox(ctx, s, "destroyed")
}

// endFor ends a sandbox for what was found on its disk; it returns at once.
func (r *remover) endFor(s *Sandbox, why string) {
	r.background.doInBackground(func() {
		r.cfg.Log.Warn("a sandbox is ended, as its policy asks", "sandbox", s.info.ID, "why", why)
		if err := r.destroy(r.background.ctx, s.info.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
			r.cfg.Log.Error("a sandbox that its policy ends can't be destroyed", "sandbox", s.info.ID, "err", err)
		}
	})
}

// claimEnd makes the caller the one who takes a sandbox away: once, and again after
// that could not be done. Any other caller gets the try that is under way. The exit is that
// of a sandbox that failed, else nil.
func (r *remover) claimEnd(ctx context.Context, s *Sandbox, exit *engine.Exit, reason string) (try *attempt, mine bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	if s.removal.try != nil || s.state.Ends() && exit != nil {
		defer s.mu.Unlock()
		return s.removal.try, false
	}
	try = &attempt{over: make(chan struct{})}
	s.removal.try = try
	if s.removal.reason == "" {
		s.removal.reason = reason
	}
	to := Destroying
	if exit != nil {
		s.exit, to = exit, Failed
	}
	s.mu.Unlock()
	if s.entered != to {
		r.tracker.correct(ctx, s, to, reason)
	}
	return try, true
}

// endSandbox takes a sandbox away, or waits for whoever does. A sandbox that can't be taken away is
// tried again in the background until it is.
func (r *remover) endSandbox(ctx context.Context, s *Sandbox, reason string) error {
	try, mine := r.claimEnd(ctx, s, nil, reason)
	if mine {
		faultpoint.Hit(faultpoint.DestroyJournaled)
		return r.attempt(ctx, s, try)
	}
	select {
	case <-try.over:
		return try.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failSandbox takes a sandbox away that ended by itself.
func (r *remover) failSandbox(ctx context.Context, s *Sandbox, exit engine.Exit) {
	try, mine := r.claimEnd(ctx, s, &exit, exit.Reason)
	if !mine {
		return
	}
	r.cfg.Log.Warn("a sandbox ended by itself", "sandbox", s.info.ID, "run", s.info.Run, "reason", exit.Reason, "code", exit.Code, "words", exit.Words)
	_ = r.attempt(ctx, s, try) // the log has it, and it is tried again
}

// loseSandbox gives up a sandbox that can't be thawed: it has failed, and is taken away.
func (r *remover) loseSandbox(s *Sandbox, reason string) {
	r.background.doInBackground(func() { r.failSandbox(r.background.ctx, s, engine.Exit{Code: lostCode, Reason: reason}) })
}

// lostCode is the exit code of what was lost: as if killed.
const lostCode = 137

// attempt is a try of the caller, who has claimed it.
func (r *remover) attempt(ctx context.Context, s *Sandbox, try *attempt) error {
	s.mu.Lock()
	reason := s.removal.reason
	s.mu.Unlock()
	try.err = r.removeSandbox(context.WithoutCancel(ctx), s, reason)
	if try.err != nil {
		r.noteStuck(s, try.err)
	}
	close(try.over)
	return try.err
}

// noteStuck keeps in mind that a sandbox could not be taken away, and sees to it that it
// is tried again.
func (r *remover) noteStuck(s *Sandbox, cause error) {
	s.mu.Lock()
	pause, tended := s.removal.noteFailure(time.Now(), r.cfg.EndRetry)
	s.mu.Unlock()
	r.cfg.Log.Error("a sandbox can't be taken away; it is tried again", "sandbox", s.info.ID, "run", s.info.Run, "again_in", pause, "err", cause)
	if !tended && !r.background.isOver() {
		r.background.doInBackground(func() { r.tryAgain(s) })
	}
}

// tryAgain tries until the sandbox is gone, or this daemon ends: the next one takes
// away what is left.
func (r *remover) tryAgain(s *Sandbox) {
	for {
		pause := time.NewTimer(time.Until(s.Stuck().Next))
		select {
		case <-pause.C:
		case <-s.gone:
			pause.Stop()
			return
		case <-r.background.ctx.Done():
			pause.Stop()
			return
		}
		_ = r.endSandbox(r.background.ctx, s, "destroyed") // the log has it
	}
}

// removeSandbox destroys the instance, writes the record and forgets the sandbox. An end
// that could not be recorded stays in the journal, for the next reconcile.
func (r *remover) removeSandbox(ctx context.Context, s *Sandbox, reason string) error {
	s.waits.Close()
	faultpoint.Hit(faultpoint.DestroyQuiet)
	s.commands.SettleAll(ctx)
	faultpoint.Hit(faultpoint.DestroySettled)
	if err := s.instance.Destroy(ctx); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s can't be taken away; it is tried again, and `cofferdam doctor` and the daemon's log say more", s.info.ID)
	}
	s.commands.SettleCut(ctx)
	faultpoint.Hit(faultpoint.DestroyGone)
	if err := r.cfg.Shelf.Drop(s.info.ID); err != nil {
		r.cfg.Log.Error("the image of a frozen sandbox can't be removed", "sandbox", s.info.ID, "err", err)
	}
	faultpoint.Hit(faultpoint.DestroyDropped)
	recorded := r.cfg.Door.SandboxEnded(ctx, s.info.ID, reason)
	if recorded != nil {
		r.cfg.Log.Error("a sandbox's end is not on record; it is tried again", "sandbox", s.info.ID, "run", s.info.Run, "err", recorded)
	}
	faultpoint.Hit(faultpoint.DestroyRecorded)
	r.cfg.Door.Unregister(s.info.ID)
	r.forgetFiles(s.info.ID)
	if recorded != nil {
		s.setState(Destroyed)
	} else if err := r.tracker.enterState(ctx, s, Destroyed, reason); err != nil {
		r.cfg.Log.Error("a sandbox's end is not in order", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
	faultpoint.Hit(faultpoint.DestroyForgotten)
	r.forgetSandbox(s)
	return nil
}

// forgetFiles removes what is kept of a sandbox beside its journal.
func (r *remover) forgetFiles(id string) {
	r.blueprints.Forget(id)
	r.inventory.Forget(id)
}

// forgetSandbox lets go all that is kept of a sandbox that is gone.
func (r *remover) forgetSandbox(s *Sandbox) {
	r.tracker.ends.Drop(s.info.ID)
	r.tracker.quotas.Drop(s.info.ID)
	r.cfg.Homes.Drop(s.info.ID)
	r.registry.dropSandbox(s)
	r.keys.dropKey(s)
	r.dropLock(r.background.ctx, s.info, func() {})
	close(s.gone)
}

// dropLock has a sandbox need its lockfiles no more, by release, and removes them if they were the last
// that did, and a token's.
func (r *remover) dropLock(ctx context.Context, info Info, release func()) {
	release()
	if info.LockDigest != "" && info.Owner.Token != "" {
		r.sweepLocks(context.WithoutCancel(ctx))
	}
}

// sweepLocks removes the lockfiles of tokens that no sandbox and no snapshot has. The next
// reconcile tries again what can't be removed.
func (r *remover) sweepLocks(ctx context.Context) {
	if err := r.documents.sweepLocks(func() (map[string]bool, error) { return r.lockDigests(ctx) }); err != nil {
		r.cfg.Log.Error("the lockfiles of sandboxes that are gone can't be removed; it is tried again", "err", err)
	}
}

// lockDigests are those of the lockfiles that sandboxes and snapshots have.
func (r *remover) lockDigests(ctx context.Context) (map[string]bool, error) {
	entries, err := r.tracker.journal.Entries(ctx)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, e := range entries {
		has[e.Info.LockDigest] = true
	}
	for _, s := range r.registry.listSandboxes() {
		has[s.info.LockDigest] = true
	}
	for _, snap := range r.copies.List() {
		has[snap.Of.LockDigest] = true
	}
	return has, nil
}

// watchPause is how long a keeper that does not answer is left alone.
const watchPause = time.Second

// watchInstance waits for the instance to end. If nobody asked for that, the sandbox
// failed: it is recorded, and its remains are taken away.
func (r *remover) watchInstance(s *Sandbox) {
	ctx := r.background.ctx
	for {
		exit, err := s.instance.Wait(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			r.failSandbox(ctx, s, exit)
			return
		case errors.Is(err, fault.ErrNotFound): // another keeper answers
			r.failSandbox(ctx, s, engine.Exit{Code: lostCode, Reason: recovery.KeeperEnded})
			return
		}
		r.cfg.Log.Warn("a sandbox can't be watched; it is tried again", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-s.gone:
			return
		case <-time.After(watchPause):
		}
	}
}
