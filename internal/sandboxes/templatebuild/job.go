package templatebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// job is a build that is being done; one goroutine's.
type job struct {
	b       *Builder
	g       *going
	req     sandbox.Request
	workdir string
	recipe  Recipe

	box    string                  // the sandbox's id, once there is one
	system []sandbox.SystemPackage // that this build and those below it brought
}

// doJob builds, and settles how that ended.
func (j *job) doJob() {
	ctx, stop := j.b.cfg.During(j.b.ctx, j.g.Owner)
	defer stop()
	var snapshot string
	err := safego.Try(func() (err error) {
		if err = j.b.enterBuild(ctx, j.g); err != nil {
			return &stepError{StepBase, err}
		}
		ctx, cancel := context.WithTimeoutCause(ctx, longest, fault.New(fault.ErrExhausted, "the build took longer than %s", longest))
		defer cancel()
		snapshot, err = j.buildTemplate(ctx)
		return err
	})
	if ctx.Err() != nil && err != nil {
		why := "the token was revoked while the template was built"
		if j.b.ctx.Err() != nil {
			why = "the daemon ended while the template was built; nothing of it is left, build it again"
		}
		err = &stepError{stepOf(err), fault.New(fault.ErrUnavailable, "%s", why)}
	}
	j.endJob(snapshot, err)
}

func stepOf(err error) string {
	if at, ok := errors.AsType[*stepError](err); ok {
		return at.step
	}
	return StepFinalize
}

// endJob tells how the build ended.
func (j *job) endJob(snapshot string, err error) {
	if j.box != "" {
		if err != nil { // of a result the record is there
			j.noteError(err)
		}
		j.b.destroy(j.box)
	} else if err != nil {
		j.noteError(err)
	}
	now := j.g.Build
	now.Ended, now.Snapshot, now.Status = time.Now().UTC(), snapshot, Ready
	if err != nil {
		now.Status, now.Step, now.Reason = Failed, stepOf(err), clientSentence(err)
		j.g.log.addLine(Error, now.Step, now.Reason, true)
		j.b.cfg.Log.Info("a template was not built", "build", j.g.ID, "step", now.Step, "err", err)
	} else {
		j.g.log.addLine(Info, StepFinalize, "the template is built", true)
	}
	j.b.settleBuild(j.g, now)
}

func (j *job) noteError(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	failed := admission.Build{Stage: admission.BuildFailed, Base: j.recipe.Base, Step: stepOf(err), Text: clientSentence(err)}
	rerr := j.b.recordBuild(ctx, j.box, j.g, failed)
	if !records.Kept(rerr) && j.box != "" { // its sandbox is gone: it is the daemon's then
		rerr = j.b.recordBuild(ctx, "", j.g, failed)
	}
	if rerr != nil {
		j.b.cfg.Log.Error("the end of a build is not on record", "build", j.g.ID, "err", rerr)
	}
}

// clientSentence is what a client may read of an error; causes are the operator's.
func clientSentence(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Sentence
	}
	if errors.Is(err, fault.ErrInvalid) {
		return err.Error() // a policy's problems, which are written for people
	}
	return "something inside failed; the daemon's log has more"
}

// buildTemplate does all of it and returns the result.
func (j *job) buildTemplate(ctx context.Context) (string, error) {
	if err := j.recipe.checkRecipe(j.req.Account, j.workdir); err != nil {
		return "", err
	}
	made, err := j.b.cfg.Sandboxes.Create(ctx, j.req)
	if err != nil {
		return "", &stepError{StepBase, err}
	}
	j.box = made.Info().ID
	if err := j.inheritSystem(ctx); err != nil {
		return "", &stepError{StepBase, err}
	}
	begun := admission.Build{Stage: admission.BuildBegun, Base: j.recipe.Base, Text: fmt.Sprint(len(j.recipe.Steps), " steps")}
	if err := j.b.recordBuild(ctx, j.box, j.g, begun); err != nil {
		return "", &stepError{StepBase, err}
	}
	limits := made.Info().Limits
	j.g.log.addLine(Info, StepBase, fmt.Sprintf("from %s, in the sandbox %s; the policy gives it %g CPUs and %d MiB of memory", j.recipe.Base, j.box, limits.CPU, limits.MemoryBytes>>20), true)
	now := firstSetting(j.req.Account, j.workdir)
	for i, s := range j.recipe.Steps {
		if err := j.doStep(ctx, i, s, &now); err != nil {
			return "", &stepError{stepNumber(i), err}
		}
	}
	return j.finishTemplate(ctx, now)
}

// finishTemplate starts what is to run in the template, waits until it is ready, and keeps it
// all.
func (j *job) finishTemplate(ctx context.Context, final setting) (string, error) {
	failed := func(err error) (string, error) { return "", &stepError{StepFinalize, err} }
	keep := sandbox.Keep{Names: j.g.Names, Contents: engine.ContentsFiles, Built: &sandbox.Built{
		Build: j.g.ID, Template: j.g.Template, Env: final.env, Workdir: final.workdir, User: final.user, Start: j.recipe.Start, Ready: j.recipe.Ready, System: j.system,
	}}
	var started *process
	if j.recipe.Start != "" || j.recipe.Ready != "" { // what runs goes on in each copy
		keep.Contents = engine.ContentsMemory
		var err error
		if started, err = j.launch(ctx, final); err == nil {
			defer started.releaseOutput()
			err = j.awaitReady(ctx, started, final)
		}
		if err != nil {
			return failed(err)
		}
	}
	j.g.log.addLine(Info, StepFinalize, "the sandbox is written to disk", true)
	snap, err := j.b.cfg.Sandboxes.Keep(ctx, j.box, keep)
	if err != nil {
		return failed(err)
	}
	ctx = context.WithoutCancel(ctx)
	// A start command may have said that it is ready and have failed since: in a copy
	// of this it would not run.
	if err = started.brokeError(); err == nil {
		err = j.b.recordBuild(ctx, j.box, j.g, admission.Build{Stage: admission.BuildReady, Base: j.recipe.Base, Snapshot: snap.ID})
	}
	if err != nil {
		return failed(errors.Join(err, j.b.cfg.Sandboxes.RemoveSnapshot(ctx, j.g.Owner, snap.ID)))
	}
	j.replace(ctx, snap)
	return snap.ID, nil
}

// replace removes the builds to which no name leads any more.
func (j *job) replace(ctx context.Context, by sandbox.Snapshot) {
	all, err := j.b.cfg.Sandboxes.Snapshots(ctx)
	if err != nil {
		j.b.cfg.Log.Warn("what a build replaces is not removed", "build", j.g.ID, "err", err)
		return
	}
	for _, s := range all {
		if s.ID == by.ID || s.Built == nil || s.Owner.Token != j.g.Owner || len(s.Names()) > 0 || s.Built.Template != j.g.Template {
			continue
		}
		if err := j.b.cfg.Sandboxes.RemoveSnapshot(ctx, j.g.Owner, s.ID); err != nil {
			j.b.cfg.Log.Warn("what a build replaces is not removed", "build", j.g.ID, "snapshot", s.ID, "err", err)
		}
	}
}
