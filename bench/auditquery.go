package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
)

const (
	queriedRecords = 1_000_000
	reportTarget   = 1_000.0 // ms
	reportRounds   = 10
	pageOfRecords  = 200 // as the command line shows
)

// measureQueries makes a log, has it indexed, and asks every report about all of
// it, then some queries.
func measureQueries(ctx context.Context, b *bench) (err error) {
	dir := filepath.Join(b.dir, "questions")
	b.progress.say("writing a log of a million records")
	if err := synthesizeLog(dir, queriedRecords); err != nil {
		return err
	}
	log, err := audit.OpenReader(dir)
	if err != nil {
		return err
	}
	x := index.New(filepath.Join(b.dir, "index", "audit.db"), log, index.Options{Progress: func(done, end uint64) {
		b.progress.round("records indexed", int(done), int(end))
	}})
	defer func() { err = errors.Join(err, x.Close()) }()
	began := time.Now()
	if err := x.CatchUp(ctx); err != nil {
		return err
	}
	rate := sample{float64(queriedRecords) / time.Since(began).Seconds()}
	b.table.add(figure("audit index, 1,000,000 records taken", unitRate, rate))
	if err := b.askReports(ctx, x); err != nil {
		return err
	}
	return b.askQueries(ctx, x)
}

func (b *bench) askReports(ctx context.Context, x *index.Index) error {
	reporter, n := report.New(report.Config{Index: x}), b.rounds(reportRounds)
	for _, name := range report.Names() {
		q := report.Question{Limit: pageOfRecords}
		if name.Name == "run" {
			q.Run = "run-004711"
		}
		var took sample
		for i := range n + 1 {
			b.progress.round("report "+name.Name, i, n)
			began := time.Now()
			if _, err := reporter.Answer(ctx, name.Name, q); err != nil {
				return err
			}
			if i > 0 {
				took.add(time.Since(began))
			}
		}
		b.table.add(figure("report "+name.Name+", 1,000,000 records", unitTime, took).
			target(fmt.Sprintf("<= %.0f", reportTarget), took.median() <= reportTarget))
	}
	return nil
}

func (b *bench) askQueries(ctx context.Context, x *index.Index) error {
	n := b.rounds(reportRounds)
	for _, q := range []struct {
		what   string
		filter index.Filter
	}{
		{"query of a package, last page", index.Filter{Where: map[string][]string{"package": {"project-123"}}, From: queriedRecords * 9 / 10, Limit: pageOfRecords}},
		{"query of a text", index.Filter{Text: "quarter 42", Limit: pageOfRecords}},
	} {
		var took sample
		for i := range n + 1 {
			b.progress.round(q.what, i, n)
			began := time.Now()
			if err := readSelected(ctx, x, q.filter); err != nil {
				return err
			}
			if i > 0 {
				took.add(time.Since(began))
			}
		}
		b.table.add(figure(q.what, unitTime, took))
	}
	return nil
}

// readSelected reads the records from the log, as an answer does.
func readSelected(ctx context.Context, x *index.Index, f index.Filter) error {
	return x.View(ctx, func(v *index.View) error {
		seqs, _, err := v.Select(ctx, f)
		if err != nil {
			return err
		}
		found := 0
		for _, err := range v.Records(ctx, seqs) {
			if err != nil {
				return err
			}
			found++
		}
		if found == 0 {
			return errors.New("the query found nothing")
		}
		return nil
	})
}
