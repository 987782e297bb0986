package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

const (
	appendRounds  = 1_000
	appendRatio   = 3.0
	appendWriters = 64
	appendRate    = 5_000.0
	appendSeconds = 3
	verifyRecords = 1_000_000
	verifyTarget  = 30.0 // s

	unitRate    = "1/s"
	unitSeconds = "s"
)

// auditRecord is what a served package is recorded as, with the nine fields.
func auditRecord(n int) audit.Record {
	return audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Served, Run: fmt.Sprintf("run-%d", n/100), Sandbox: "sb-0123456789ab",
		Policy:    "sha256:42834649c8749a62f1365ce1b712a91e4266ac493b486d4b7ce1f6266b617ac6",
		Ecosystem: "python", Package: "requests", RequestedVersion: ">=2.31", InstalledVersion: "2.31.0", File: "requests-2.31.0-py3-none-any.whl",
		SourceURL: "https://files.example/packages/requests-2.31.0-py3-none-any.whl", Size: 62574,
		SHA256: "58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f", ResolvedBy: "allowlist", Rule: "allowed_packages.python.requests",
	}
}

// measureAudit measures the log by itself, on the disk that the bench uses.
func measureAudit(ctx context.Context, b *bench) error {
	dir := filepath.Join(b.dir, "auditlog")
	if err := b.appendBesideSync(ctx, filepath.Join(dir, "one")); err != nil {
		return err
	}
	if err := b.appendFromMany(ctx, filepath.Join(dir, "many")); err != nil {
		return err
	}
	return b.verifyMany(ctx, filepath.Join(dir, "large"))
}

// appendBesideSync takes turns: an acknowledged append, and the same bytes
// written and synced.
func (b *bench) appendBesideSync(ctx context.Context, dir string) (err error) {
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	bare, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		return err
	}
	defer bare.Close()
	line := bytes.Repeat([]byte("x"), 700)
	n := b.rounds(appendRounds)
	var appended, synced sample
	for i := range n {
		b.progress.round("appends", i, n)
		begun := time.Now()
		if _, err := bare.Write(line); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(bare.Fd())); err != nil {
			return err
		}
		synced.add(time.Since(begun))
		begun = time.Now()
		if _, err := log.Append(ctx, auditRecord(i)); err != nil {
			return err
		}
		appended.add(time.Since(begun))
	}
	r := figure("one record appended to the log", unitTime, appended).beside("a bare write and fdatasync", synced)
	b.table.add(r.target(fmt.Sprintf("<= %.0fx", appendRatio), r.Ratio <= appendRatio))
	return nil
}

// appendFromMany has many writers append at once.
func (b *bench) appendFromMany(ctx context.Context, dir string) error {
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return err
	}
	b.progress.say("64 writers append")
	var group sync.WaitGroup
	var mu sync.Mutex // guards the two below
	var took sample
	var failure error
	ends := time.Now().Add(appendSeconds * time.Second)
	begun := time.Now()
	for range appendWriters {
		group.Go(func() {
			var own sample
			for i := 0; time.Now().Before(ends); i++ {
				at := time.Now()
				if _, err := log.Append(ctx, auditRecord(i)); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
					return
				}
				own.add(time.Since(at))
			}
			mu.Lock()
			took = append(took, own...)
			mu.Unlock()
		})
	}
	group.Wait()
	rate := float64(len(took)) / time.Since(begun).Seconds()
	if err := errors.Join(failure, log.Close()); err != nil {
		return err
	}
	b.table.add(row{What: "records appended by 64 writers", Unit: unitRate, Rounds: len(took), Median: rate}.
		target(fmt.Sprintf(">= %.0f", appendRate), rate >= appendRate))
	b.table.add(figure("  one of their appends", unitTime, took))
	return nil
}

// verifyMany verifies a log of a million records (fewer, where -rounds says so).
func (b *bench) verifyMany(ctx context.Context, dir string) error {
	n := int(math.Max(1_000, math.Min(1, b.opts.rounds)*verifyRecords))
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return err
	}
	b.progress.say("%s", fmt.Sprintf("writing a log of %d records", n))
	work := make(chan int, 1_024)
	var group sync.WaitGroup
	failures := make(chan error, appendWriters)
	for range 8 * appendWriters { // they share syncs
		group.Go(func() {
			for i := range work {
				if _, err := log.Append(ctx, auditRecord(i)); err != nil {
					select {
					case failures <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	group.Wait()
	close(failures)
	if err := errors.Join(<-failures, log.Close()); err != nil {
		return err
	}
	var took sample
	for i := range minRounds {
		b.progress.round("verifying it", i, minRounds)
		begun := time.Now()
		verdict, err := audit.Verify(ctx, dir, audit.VerifyOptions{})
		if err != nil {
			return err
		}
		if !verdict.Sound || verdict.Covered != uint64(n) {
			return fmt.Errorf("the log that was written is not sound: %+v", verdict.Problems)
		}
		took = append(took, time.Since(begun).Seconds())
	}
	r := figure(fmt.Sprintf("a log of %d records verified", n), unitSeconds, took)
	b.table.add(r.target(fmt.Sprintf("<= %.0f", verifyTarget), r.Median <= verifyTarget))
	return nil
}
