package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/osv-scalibr/veles"
	"github.com/google/osv-scalibr/veles/secrets/anthropicapikey"
	"github.com/google/osv-scalibr/veles/secrets/github"
	"github.com/google/osv-scalibr/veles/secrets/openai"
	"github.com/google/osv-scalibr/veles/secrets/slacktoken"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
)

const (
	scanRounds = 20
	scanBytes  = 8 << 20
	scanChunk  = 32 << 10
)

// measureScan scans text as commands write it, in pieces: for secrets, and for personal
// data too; beside them the digest of the same text, and the library's own engine with
// four of its detectors. Then the same text as a request's body, on its way to a host.
func measureScan(ctx context.Context, b *bench) error {
	text := logLines(scanBytes)
	set := dlp.NewSet(append(secrets.Rules(), personal.Rules()...)...)
	library, err := veles.NewDetectionEngine([]veles.Detector{
		github.NewClassicPATDetector(), anthropicapikey.NewDetector(), openai.NewDetector(), slacktoken.NewAppLevelTokenDetector(),
	})
	if err != nil {
		return err
	}
	through, err := newBodies(ctx, set)
	if err != nil {
		return err
	}
	var some, all, floor, theirs, sent, watched sample
	n := b.rounds(scanRounds)
	for i := range n + 1 {
		b.progress.round("8 MB", i, n)
		one := stopwatch(func() { scanned(set, dlp.Plan{Secrets: dlp.Redact}, text) })
		both := stopwatch(func() { scanned(set, dlp.Plan{Secrets: dlp.Redact, Personal: dlp.Redact}, text) })
		sum := stopwatch(func() { sha256.Sum256(text) })
		engine := stopwatch(func() { _, err = library.Detect(ctx, bytes.NewReader(text)) })
		if err != nil {
			return err
		}
		body := stopwatch(func() { err = through.send(ctx, through.scans, text) })
		if err != nil {
			return err
		}
		watch := stopwatch(func() { err = through.send(ctx, through.watches, text) })
		if err != nil {
			return err
		}
		if i > 0 {
			sent, watched = append(sent, speedOf(body)), append(watched, speedOf(watch))
			some, all = append(some, speedOf(one)), append(all, speedOf(both))
			floor, theirs = append(floor, speedOf(sum)), append(theirs, speedOf(engine))
		}
	}
	b.table.add(figure("output scanned for secrets", unitSpeed, some).beside("its SHA-256", floor))
	b.table.add(figure("  and for personal data", unitSpeed, all).beside("the library's engine, 4 detectors", theirs))
	b.table.add(figure("request body scanned on its way", unitSpeed, sent).beside("its SHA-256", floor))
	b.table.add(figure("  looked through for a placeholder", unitSpeed, watched).beside("its SHA-256", floor))
	return nil
}

func scanned(set *dlp.Set, p dlp.Plan, text []byte) {
	s := set.Scanner(p)
	for len(text) > 0 {
		n := min(len(text), scanChunk)
		s.Write(text[:n])
		text = text[n:]
	}
	s.Close()
}

func stopwatch(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// speedOf is megabytes of the text in a second.
func speedOf(took time.Duration) float64 { return scanBytes / 1e6 / took.Seconds() }

// logLines is what a server writes.
func logLines(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "2026-01-02T03:04:%02dZ INFO request id=%08x method=GET path=/a/b/%d status=200 took=%dms\n", i%60, i*7919, i, i%97)
	}
	return b.Bytes()[:size]
}
