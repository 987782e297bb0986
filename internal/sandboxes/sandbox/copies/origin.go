// Package copies is how sandboxes are copied: images of running ones, which are kept as
// snapshots or used up by a fork, and what a sandbox needs that is made of one.
package copies

import (
	"context"
	"encoding/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
)

// Origin is what a copy of a sandbox is made from in place of a template: the
// image of a snapshot, or that of a fork.
type Origin struct {
	Body
	Snapshot string // its id; "": it is a fork
	Digest   string
	Contents engine.Contents
	Bytes    int64
	Image    string // a directory that only the engine reads
	Facts    *ledger.Facts
	release  func() // the image is not needed any more
}

// Body is what a snapshot's manifest keeps for the manager.
type Body struct {
	Of        journal.Info         `json:"of"` // the sandbox of which it is a copy
	Owner     journal.Owner        `json:"owner,omitzero"`
	Made      Blueprint            `json:"made"`
	Commands  []commands.Copied    `json:"commands,omitempty"` // that ran
	Ancestors []admission.Ancestor `json:"ancestors"`
	// Narrowing is what its client had given up of the network.
	Narrowing policy.Narrowing `json:"narrowing,omitzero"`
	// Built is there if it came of a template's build.
	Built *Built `json:"built,omitempty"`
}

// factsFile is the attachment with ledger.Facts.
const factsFile = "facts.json"

// Release gives the image up; of nil it does nothing.
func (o *Origin) Release() {
	if o != nil {
		o.release()
	}
}

// Name has a new sandbox's Info say of what it is a copy, if it is one.
func (o *Origin) Name(info *journal.Info) {
	if o == nil {
		return
	}
	info.Ancestors = o.Ancestors
	if info.Snapshot = o.Snapshot; o.Snapshot == "" {
		info.Parent = o.Of.ID
	}
}

// Record is the origin for the record.
func (o *Origin) Record() admission.Copy {
	return admission.Copy{Snapshot: o.Snapshot, Digest: o.Digest, Contents: string(o.Contents), Bytes: o.Bytes, Of: o.Of.ID}
}

// Open opens a snapshot and checks it against the log.
func (l *Library) Open(ctx context.Context, lease *snapshots.Lease) (*Origin, error) {
	from := &Origin{
		Snapshot: lease.ID, Digest: lease.Digest, Contents: lease.Contents, Bytes: lease.Bytes,
		Image: lease.Image(), release: lease.Release,
	}
	damaged := func(err error) error {
		return fault.Wrap(fault.ErrConflict, err, "the snapshot %s can't be read", lease.ID)
	}
	if err := json.Unmarshal(lease.Body, &from.Body); err != nil {
		return nil, damaged(err)
	}
	if err := l.cfg.Door.SnapshotOnRecord(ctx, lease.Record, from.Record()); err != nil {
		return nil, err
	}
	data, err := lease.Attachment(factsFile)
	if err != nil || data == nil {
		return from, err
	}
	if err := json.Unmarshal(data, &from.Facts); err != nil {
		return nil, damaged(err)
	}
	return from, nil
}
