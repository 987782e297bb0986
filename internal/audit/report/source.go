package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
)

// project is a package of an ecosystem, as numbers of texts.
type project struct{ ecosystem, name int64 }

// unexpectedSource finds files that were served from elsewhere than the upstreams
// of their ecosystem, or than the first file of their project that is on record.
func unexpectedSource(ctx context.Context, a *asking) error {
	var upstreams map[string][]string
	if a.config.Upstreams != nil {
		upstreams = a.config.Upstreams()
	}
	first := map[project]shape{}
	var all []shape
	err := a.shapes(ctx, func(s shape) error {
		all = append(all, s)
		key := project{s.ecosystem, s.project}
		if known, ok := first[key]; !ok || s.first < known.first {
			first[key] = s
		}
		return nil
	}, audit.Served)
	if err != nil {
		return err
	}
	reasons := map[int64]string{}
	for _, s := range all {
		why, err := a.unexpected(ctx, s, first[project{s.ecosystem, s.project}], upstreams)
		if err != nil {
			return err
		}
		if why != "" {
			reasons[s.id] = why
		}
	}
	if err := a.list(ctx, reasons, "package", "version", "source", "sha256"); err != nil {
		return err
	}
	let, runs, err := a.weighed(ctx, audit.Served)
	if err != nil {
		return err
	}
	against := "the configured upstreams and earlier files"
	if upstreams == nil {
		against = "earlier files only: the configured upstreams are not known here"
	}
	a.report.Verdict = fmt.Sprintf("No unexpected source in %s of %s, compared with %s.", of(let, "served file"), of(runs, "run"), against)
	if a.report.Found > 0 {
		a.report.Verdict = fmt.Sprintf("%s from an unexpected source, of %s in %s, compared with %s.", of(a.report.Found, "file"), count(let), of(runs, "run"), against)
	}
	return nil
}

// unexpected says what is odd about a shape's source, "" if nothing is.
func (a *asking) unexpected(ctx context.Context, s, first shape, upstreams map[string][]string) (string, error) {
	host, err := a.text(ctx, s.host)
	if err != nil {
		return "", err
	}
	if host == "" {
		return "its source is not on record", nil
	}
	if s.host != first.host {
		before, err := a.text(ctx, first.host)
		return fmt.Sprintf("the project's first file, record %d, came from %s", first.first, before), err
	}
	ecosystem, err := a.text(ctx, s.ecosystem)
	if err != nil {
		return "", err
	}
	if upstreams != nil && !slices.Contains(upstreams[ecosystem], host) {
		return "it is no upstream of " + ecosystem, nil
	}
	return "", nil
}
