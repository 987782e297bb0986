package copies

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
)

// Source is the sandbox that a copy is made of, as far as that must be known. All fields
// are needed.
type Source struct {
	Info     journal.Info
	Instance engine.Instance
	Commands *commands.Table
	State    func() journal.State
	// Steadily does something while the sandbox is not frozen, and not on its way there.
	Steadily func(ctx context.Context, do func()) error
	// Enter has it stand as one that is being copied; leave ends that.
	Enter func(ctx context.Context) (leave func(), err error)
}

// Keep makes a snapshot of a running sandbox, which goes on. Contents "" is memory.
func (l *Library) Keep(ctx context.Context, s Source, keep Keep) (Snapshot, error) {
	if err := checkNames(keep.Names); err != nil {
		return Snapshot{}, err
	}
	if keep.Contents == "" {
		keep.Contents = engine.ContentsMemory
	}
	written, err := l.reserveRoom(ctx, s)
	if err != nil {
		return Snapshot{}, err
	}
	defer written()
	draft, from, err := l.Write(ctx, s, journal.NewID("snap", 8), keep.Contents, true)
	if err != nil {
		return Snapshot{}, err
	}
	from.Built = keep.Built
	snap, err := l.publishSnapshot(ctx, draft, from, keep.Names)
	return snap, errors.Join(err, draft.Drop())
}

// reserveRoom refuses another snapshot to an owner whose snapshots, with those that are
// being written, have as much of the disk as its sandboxes may have. done must be
// called when this one is in the store, or is not to be.
func (l *Library) reserveRoom(ctx context.Context, s Source) (done func(), err error) {
	owner := s.Info.Owner
	if owner.Quota.DiskBytes == 0 || l.cfg.Store == nil {
		return func() {}, nil
	}
	done, used, fits := l.drafts.takeRoom(owner.Token, imageSize(ctx, s)+s.Info.LockBytes, owner.Quota.DiskBytes, func() (kept int64) {
		for _, k := range l.List() { // the lockfiles are kept as long as it is
			if k.Owner.Token == owner.Token {
				kept += k.Bytes + k.Of.LockBytes
			}
		}
		return kept
	})
	if !fits {
		return nil, fault.Exhausted(0, "with this one the token's snapshots would take about %d MiB, and its quota of disk is %d; remove some", used>>20, owner.Quota.DiskBytes>>20)
	}
	return done, nil
}

// Write makes the image of a sandbox and says what is in it.
func (l *Library) Write(ctx context.Context, s Source, id string, contents engine.Contents, keep bool) (*snapshots.Draft, *Origin, error) {
	body, err := l.mayCopy(ctx, s, contents)
	if err != nil {
		return nil, nil, err
	}
	// What it installed a moment ago is to be on record as what came in the copy. Should it
	// be frozen just now, the copy's own inventory tells.
	if err := s.Commands.SettleEnded(ctx); err != nil && !errors.Is(err, commands.ErrStill) {
		return nil, nil, err
	}
	from := &Origin{Contents: contents, release: func() {}}
	from.Of, from.Owner = s.Info, s.Info.Owner
	if from.Made, err = l.cfg.Blueprints.Load(s.Info.ID); err != nil {
		return nil, nil, err
	}
	store, err := l.openStore()
	if err != nil {
		return nil, nil, err
	}
	draft, err := store.Begin(from.Owner.Token, id, imageSize(ctx, s), keep)
	if err != nil {
		return nil, nil, err
	}
	faultpoint.Hit(faultpoint.SnapshotBegun)
	from.Image = draft.Image()
	if err := l.writeImage(ctx, s, body, from); err != nil {
		return nil, nil, errors.Join(err, draft.Drop())
	}
	faultpoint.Hit(faultpoint.SnapshotWritten)
	return draft, from, nil
}

// mayCopy refuses sandboxes of which there can be no copy.
func (l *Library) mayCopy(ctx context.Context, s Source, contents engine.Contents) (engine.Snapshotter, error) {
	id := s.Info.ID
	if contents != engine.ContentsMemory && contents != engine.ContentsFiles {
		return nil, fault.Invalid("a snapshot has memory or files, not %.20q", contents)
	}
	if state := s.State(); state != journal.Running {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s is %s; only of one that runs a copy can be made", id, state)
	}
	if s.Info.Plan {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s only weighs installs for a plan; there are no copies of it", id)
	}
	if len(s.Info.WritableMounts) > 0 {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s has the host's files mounted read-write (%s): they would be in no copy, and all copies would write to the same ones; make it without such mounts, and copy files in",
			id, s.Info.WritableMounts[0])
	}
	body, ok := s.Instance.(engine.Snapshotter)
	caps := engine.Capabilities{}
	if eng := l.cfg.Engines[s.Info.Engine]; eng != nil {
		var err error
		if caps, err = eng.Capabilities(ctx); err != nil {
			return nil, err
		}
	}
	switch needs := contents.Control(); {
	case ok && slices.Contains(caps.Enforces, needs):
		return body, nil
	case ok && slices.Contains(caps.Enforces, engine.ControlSnapshotFiles):
		return nil, fault.New(fault.ErrUnavailable, "the engine %s can't copy a sandbox with its memory here%s; a snapshot of its files alone can be made", s.Info.Engine, caps.Because(needs))
	default:
		return nil, fault.New(fault.ErrUnavailable, "the engine %s can't copy sandboxes here%s", s.Info.Engine, caps.Because(needs))
	}
}

// imageSize is about how large an image will be. The reserve bounds what it takes beyond that.
func imageSize(ctx context.Context, s Source) int64 {
	stats, err := s.Instance.Stats(ctx)
	if err != nil {
		return 0 // the free-space reserve and the size of what lies there still count
	}
	return stats.MemoryBytes
}

// writeImage has the engine write the image; the sandbox is not frozen meanwhile.
func (l *Library) writeImage(ctx context.Context, s Source, body engine.Snapshotter, from *Origin) error {
	var werr error
	err := s.Steadily(ctx, func() {
		leave, err := s.Enter(ctx)
		if err != nil {
			werr = err
			return
		}
		defer leave()
		began := time.Now()
		if werr = body.Snapshot(ctx, from.Image, from.Contents); werr != nil {
			return
		}
		werr = l.describeImage(ctx, s, from, began)
	})
	return errors.Join(err, werr)
}

// describeImage says what came into an image that has just been written.
func (l *Library) describeImage(ctx context.Context, s Source, from *Origin, began time.Time) error {
	lineage, err := l.cfg.Door.Lineage(ctx, s.Info.ID)
	if err != nil {
		return err
	}
	from.Ancestors, from.Facts = lineage.Ancestors, lineage.Facts
	from.Narrowing = l.cfg.Door.Narrowing(s.Info.ID)
	known, err := l.cfg.Keeper.Get(ctx, s.Info.ID)
	if err != nil {
		return err
	}
	if from.Contents == engine.ContentsMemory {
		from.Commands = s.Commands.Running(known.Commands, began)
	}
	return nil
}

// publishSnapshot makes a snapshot of a draft, on record before anybody can use it.
func (l *Library) publishSnapshot(ctx context.Context, draft *snapshots.Draft, from *Origin, names []string) (Snapshot, error) {
	name, also := "", []string(nil)
	if len(names) > 0 {
		name, also = names[0], names[1:]
	}
	if err := attachFacts(draft, from.Facts); err != nil {
		return Snapshot{}, err
	}
	body, err := json.Marshal(from.Body)
	if err != nil {
		return Snapshot{}, err
	}
	manifest, digest, err := draft.Finish(snapshots.Manifest{
		Name: name, Owner: from.Owner.Token, Created: time.Now().UTC(), Contents: from.Contents, Template: from.Of.Digest, Body: body,
	})
	if err != nil {
		return Snapshot{}, err
	}
	record, err := l.cfg.Door.SandboxSnapshotted(ctx, from.Of.ID, admission.Copy{
		Snapshot: manifest.ID, Name: strings.Join(names, " "), Digest: digest, Contents: string(manifest.Contents), Bytes: manifest.Bytes,
	})
	if err != nil {
		return Snapshot{}, err
	}
	if err := draft.Publish(manifest, record, also...); err != nil {
		return Snapshot{}, err
	}
	faultpoint.Hit(faultpoint.SnapshotPublished)
	return snapshotOf(snapshots.Snapshot{Manifest: manifest, Digest: digest, Name: name, Also: also})
}

// attachFacts keeps what clients have read. Where that is more than a snapshot
// takes it is left out: they read it again then.
func attachFacts(draft *snapshots.Draft, facts *ledger.Facts) error {
	if facts == nil || len(facts.Projects) == 0 {
		return nil
	}
	data, err := json.Marshal(facts)
	if err != nil || len(data) > mostFacts {
		return err
	}
	return draft.Attach(factsFile, data)
}

const mostFacts = 32 << 20 // bytes
