// Package selftest tries the whole chain from a client's request to the auditor's
// proof, with packages of its own: it starts a daemon with a state of its own and
// a registry on the loopback, has an allowed, a refused and a held package
// installed in a real sandbox, answers for the held one, and then compares what is
// known to have happened with what the log, its proofs and its export say.
package selftest

import (
	"context"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
)

// Link is one checked link of the chain: it must hold for the log to be believed. Detail says what
// is wrong, and what was looked at where nothing is.
type Link struct {
	Name   string `json:"name"`
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"`
}

// Report is the checklist. Broken names the first link that does not hold; "": all
// do.
type Report struct {
	Sound   bool          `json:"sound"`
	Broken  string        `json:"broken,omitempty"`
	Links   []Link        `json:"links"`
	Records int           `json:"records"`
	Took    time.Duration `json:"took_ns"`
}

// Wiring is how the self-test looks at a log, and by which clock. Each part may be
// replaced by a broken one, to see that this is found.
type Wiring struct {
	// Clock is the host's.
	Clock func() time.Time
	// Records are those of the log, in its order, as its readers see them.
	Records func(ctx context.Context) ([]audit.Record, error)
	// Export is the log as JSON lines, as other systems get it.
	Export func(ctx context.Context) ([]byte, error)
	// Verify judges the log's files, once nobody writes them any more.
	Verify func(ctx context.Context) (audit.Verdict, error)
	// Prove proves one record; Keys are the public keys to check that with.
	Prove func(record uint64) (audit.Proof, error)
	Keys  func() (checkpoint.Keyring, error)
}

// drill does what is to be on record, and so makes evidence.
type drill interface {
	// playDrill has the packages installed, refused, held and approved. It tells what
	// it saw itself, without a look at the log.
	playDrill(ctx context.Context, e *Evidence) error
	// endDaemon ends what still writes to the log.
	endDaemon(ctx context.Context) error
}

// runDrill plays the drill, looks at the log through the wiring, and judges. An error
// means that it could not be done; a broken link is in the report.
func runDrill(ctx context.Context, d drill, w Wiring) (Report, error) {
	e := Evidence{Releases: releases(), Began: w.Clock()}
	err := d.playDrill(ctx, &e)
	e.Ended = w.Clock()
	if err != nil {
		return Report{}, fmt.Errorf("the drill could not be played: %w", err)
	}
	// A link that can't be looked at is broken, and not the end: the others say where.
	e.Records, e.RecordsErr = w.Records(ctx)
	e.Export, e.ExportErr = w.Export(ctx)
	if err := d.endDaemon(ctx); err != nil {
		return Report{}, fmt.Errorf("the daemon did not end: %w", err)
	}
	e.Verdict, e.VerifyErr = w.Verify(ctx)
	e.proveRecords(w)
	report := Report{Sound: true, Links: judgeLinks(&e), Records: len(e.Records), Took: w.Clock().Sub(e.Began)}
	for _, l := range report.Links {
		if !l.Holds && report.Sound {
			report.Sound, report.Broken = false, l.Name
		}
	}
	return report, nil
}

// proveRecords has every record proved and checks the proofs as an auditor would.
func (e *Evidence) proveRecords(w Wiring) {
	keys, err := w.Keys()
	if err != nil {
		e.ProofErr = err
		return
	}
	for _, r := range e.Records {
		proof, err := w.Prove(r.Seq)
		if err == nil {
			_, err = proof.Check(keys)
		}
		if err == nil {
			err = checkAbout(proof, r)
		}
		if err != nil {
			e.ProofErr = fmt.Errorf("record %d: %w", r.Seq, err)
			return
		}
		e.Proofs++
	}
}
