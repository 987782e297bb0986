package templatebuild

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Builder makes templates and remembers how. Safe for concurrent use.
type Builder struct {
	cfg     Config
	uploads *uploads
	ctx     context.Context //nolint:containedctx // the builder's own life: builds outlive the requests that start them
	cancel  context.CancelFunc
	work    sync.WaitGroup

	turns *fairqueue.Shares // of builds at a time, by tokens

	mu     sync.Mutex // guards what follows
	builds map[string]*going
}

// going is a build; its log is there while it goes on. The Builder's lock guards all but
// the log.
type going struct {
	Build

	queued bool
	log    *journal
	leave  func() // gives its turn back; nil: it has none
}

// Open makes a builder that knows of the builds of earlier daemons, and ends those that
// had not ended, with their sandboxes.
func Open(cfg Config) (*Builder, error) {
	b := &Builder{cfg: cfg, builds: map[string]*going{}, turns: fairqueue.New(fairqueue.Limits{All: atOnceAll, Each: atOnceEach, Sure: 1, Most: atOnceMost})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	var err error
	if b.uploads, err = newUploads(filepath.Join(cfg.Dir, "files")); err == nil {
		err = b.loadBuilds()
	}
	if err != nil {
		b.cancel()
		return nil, err
	}
	for _, s := range cfg.Sandboxes.List() {
		if s.Info().Labels[Label] != "" {
			safego.In(&b.work, func() { b.destroy(s.Info().ID) })
		}
	}
	safego.In(&b.work, func() { safego.Stay(b.ctx, b.tendBuilds) })
	return b, nil
}

// Close ends what is being built, and waits for that.
func (b *Builder) Close() {
	b.cancel()
	b.work.Wait()
}

// tendBuilds forgets what is old, now and then.
func (b *Builder) tendBuilds() {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		b.mu.Lock()
		old := b.pruneBuilds()
		b.mu.Unlock()
		b.forgetBuilds(old)
		b.uploads.sweepOld()
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Begin announces a build whose result is to have these names.
func (b *Builder) Begin(owner sandbox.Owner, template, name string, names []string) (Build, error) {
	if len(names) == 0 || len(names) > maxTags {
		return Build{}, fault.Invalid("a build gives 1 to %d tags, and not %d", maxTags, len(names))
	}
	made := Build{
		ID: newBuildID(), Template: template, Name: name, Names: names, Owner: owner.Token, Status: Waiting, Created: time.Now().UTC(),
	}
	if err := b.announce(made); err != nil {
		return Build{}, err
	}
	if err := b.writeBuild(file{Build: made}); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.builds, made.ID) // nobody knows its id
		return Build{}, err
	}
	return made, nil
}

// announce takes the place of a build that waits, if its owner has one.
func (b *Builder) announce(made Build) error {
	b.mu.Lock()
	old := b.pruneBuilds()
	waiting := 0
	for _, g := range b.builds {
		if g.Owner == made.Owner && g.Status == Waiting {
			waiting++
		}
	}
	if waiting < maxWaiting {
		b.builds[made.ID] = &going{Build: made}
	}
	b.mu.Unlock()
	b.forgetBuilds(old)
	if waiting >= maxWaiting {
		return fault.Exhausted(time.Minute, "the token has %d builds that have not begun; at most %d", waiting, maxWaiting)
	}
	return nil
}

// newBuildID is a random UUID: clients read no other ids of builds.
func newBuildID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails: it ends the process instead
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// Known tells whether an owner has announced a build of a template.
func (b *Builder) Known(owner, template string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.builds {
		if g.Owner == owner && g.Template == template {
			return true
		}
	}
	return false
}

// Link hands out a ticket for an upload, and tells whether it is there already.
func (b *Builder) Link(owner sandbox.Owner, hash string) (present bool, ticket string, err error) {
	return b.uploads.issueTicket(owner, hash)
}

// Holder is the token whose a ticket is.
func (b *Builder) Holder(ticket string) (token string, ok bool) {
	t, ok := b.uploads.holder(ticket)
	return t.owner.Token, ok
}

// Receive takes an upload.
func (b *Builder) Receive(ticket string, body io.Reader) error {
	return b.uploads.receiveUpload(ticket, body)
}

// findBuild needs mu.
func (b *Builder) findBuild(owner, template, id string) (*going, error) {
	g := b.builds[id]
	if g == nil || g.Owner != owner || g.Template != template {
		return nil, fault.New(fault.ErrNotFound, "there is no build %q of the template %q", text.Shorten(id, 80), text.Shorten(template, 80))
	}
	return g, nil
}

// Start builds what was announced, in the background: req is the sandbox that the steps
// are done in, workdir its directory.
func (b *Builder) Start(template, id string, req sandbox.Request, workdir string, recipe Recipe) error {
	g, err := b.queueBuild(req.Owner.Token, template, id)
	if err != nil {
		return err
	}
	if b.ctx.Err() != nil {
		b.unqueue(g)
		return fault.New(fault.ErrUnavailable, "the daemon ends")
	}
	if _, leave, free := b.turns.Try(fairqueue.For(b.ctx, g.Owner)); free { // so that who asks at once hears that it is built
		if err := b.beginBuild(g, leave); err != nil {
			b.unqueue(g)
			return err
		}
	}
	j := &job{b: b, g: g, req: req, workdir: workdir, recipe: recipe}
	safego.In(&b.work, j.doJob)
	return nil
}

// Refuse ends a build that can't begin: what it is made from is not to be had.
func (b *Builder) Refuse(owner, template, id string, why error) error {
	g, err := b.queueBuild(owner, template, id)
	if err != nil {
		return err
	}
	(&job{b: b, g: g, req: sandbox.Request{Owner: sandbox.Owner{Token: owner}}}).endJob("", &stepError{StepBase, why})
	return nil
}

// queueBuild has an announced build begin, or wait for its turn; once.
func (b *Builder) queueBuild(owner, template, id string) (*going, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g, err := b.findBuild(owner, template, id)
	if err != nil {
		return nil, err
	}
	if g.Status != Waiting || g.queued {
		return nil, fault.New(fault.ErrConflict, "the build %s has begun already", id)
	}
	g.queued, g.log = true, &journal{}
	return g, nil
}

// unqueue undoes that, of one that can't begin now.
func (b *Builder) unqueue(g *going) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g.queued, g.log = false, nil
}

// Look tells how a build stands, with entries of its log.
func (b *Builder) Look(owner, template, id string, offset, most int) (Build, []Entry, error) {
	b.mu.Lock()
	g, err := b.findBuild(owner, template, id)
	if err != nil {
		b.mu.Unlock()
		return Build{}, nil, err
	}
	now, log := g.Build, g.log
	b.mu.Unlock()
	if log != nil {
		return now, log.entriesFrom(offset, most), nil
	}
	if !now.hasEnded() {
		return now, []Entry{}, nil
	}
	entries, err := b.readEntries(id, offset, most)
	if err != nil {
		return Build{}, nil, fault.Wrap(fault.ErrUnavailable, err, "the build %s can't be read", id)
	}
	return now, entries, nil
}

// Builds are an owner's, of all templates.
func (b *Builder) Builds(owner string) []Build {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Build
	for _, g := range b.builds {
		if g.Owner == owner {
			all = append(all, g.Build)
		}
	}
	slices.SortFunc(all, func(x, y Build) int { return y.Created.Compare(x.Created) })
	return all
}

// enterBuild waits until a build may begin: a token has so many at once, and so have all, but for the
// one that each may have.
func (b *Builder) enterBuild(ctx context.Context, g *going) error {
	b.mu.Lock()
	begun := g.leave != nil
	b.mu.Unlock()
	if begun {
		return nil
	}
	_, leave, err := b.turns.Take(fairqueue.For(ctx, g.Owner))
	if err != nil {
		return context.Cause(ctx)
	}
	return b.beginBuild(g, leave)
}

// beginBuild has a build begin that has a turn, which is given back by leave. The one who queued it calls this.
func (b *Builder) beginBuild(g *going, leave func()) error {
	b.mu.Lock()
	now := g.Build
	b.mu.Unlock()
	now.Status = Building
	if err := b.writeBuild(file{Build: now}); err != nil {
		leave()
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g.Build, g.leave = now, leave
	return nil
}

// settleBuild puts the end of a build where it is found.
func (b *Builder) settleBuild(g *going, now Build) {
	b.mu.Lock()
	log := g.log
	b.mu.Unlock()
	err := b.writeBuild(file{Build: now, Entries: log.entriesFrom(0, math.MaxInt)}) // up to 25 MB, for which nobody else's request waits
	if err != nil {
		b.cfg.Log.Error("the end of a build is not kept; after a restart it is told as one that was cut off", "build", now.ID, "err", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		g.log = nil
	}
	g.Build, g.queued = now, false
	if g.leave != nil {
		g.leave()
		g.leave = nil
	}
}

func (b *Builder) destroy(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.cfg.Sandboxes.Destroy(ctx, id); err != nil && !errors.Is(err, fault.ErrNotFound) {
		b.cfg.Log.Error("a build's sandbox can't be destroyed", "sandbox", id, "err", err)
	}
}

// recordBuild records a build in the log; what can't be recorded does not happen.
func (b *Builder) recordBuild(ctx context.Context, box string, g *going, r admission.Build) error {
	r.ID, r.Template, r.Token = g.ID, g.Name, g.Owner
	return b.cfg.Recorder.RecordBuild(ctx, box, r)
}
