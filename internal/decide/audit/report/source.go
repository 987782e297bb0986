package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// project is a package of an ecosystem, as numbers of texts.
type project struct{ ecosystem, name int64 }

// filesOrigin is where files of a project come from.
type filesOrigin struct {
	project

	host int64
}

// unexpectedSource finds files that were served from elsewhere than the upstreams
// of their ecosystem, or than the first file of their project that is on record.
func unexpectedSource(ctx context.Context, a *asking) error {
	var upstreams map[string][]string
	if a.config.Upstreams != nil {
		upstreams = a.config.Upstreams()
	}
	odd, err := a.oddSources(ctx, upstreams)
	if err != nil {
		return err
	}
	reasons := map[int64]string{}
	for from, why := range odd {
		err := a.shapes(ctx, func(s shape) error {
			reasons[s.id] = why
			return nil
		}, "package = ? AND ecosystem = ? AND host = ?", []any{from.name, from.ecosystem, from.host}, audit.Served)
		if err != nil {
			return err
		}
	}
	if err := a.list(ctx, reasons, "package", "version", "source", "sha256"); err != nil {
		return err
	}
	files, runs, err := a.weighed(ctx, true, false)
	if err != nil {
		return err
	}
	against := "the configured upstreams and earlier files"
	if upstreams == nil {
		against = "earlier files only: the configured upstreams are not known here"
	}
	a.report.Verdict = fmt.Sprintf("No unexpected source in %s of %s, compared with %s.", countOf(files, "served file"), countOf(runs, "run"), against)
	if a.report.Found > 0 {
		a.report.Verdict = fmt.Sprintf("%s from an unexpected source, of %s in %s, compared with %s.", countOf(a.report.Found, "file"), formatCount(files), countOf(runs, "run"), against)
	}
	return nil
}

// oddSources are the sources in which something is odd, with what that is.
func (a *asking) oddSources(ctx context.Context, upstreams map[string][]string) (map[filesOrigin]string, error) {
	served, err := a.view.ID(ctx, string(audit.Served))
	if err != nil {
		return nil, err
	}
	rows, err := a.view.Query(ctx, "SELECT ecosystem, package, host, min(first) FROM shapes WHERE outcome = ? GROUP BY ecosystem, package, host ORDER BY min(first)", served)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	type sighting struct {
		filesOrigin
		seq uint64
	}
	var all []sighting // by their first record
	for rows.Next() {
		var s sighting
		var seq int64
		if err := rows.Scan(&s.ecosystem, &s.name, &s.host, &seq); err != nil {
			return nil, err
		}
		s.seq = uint64(seq)
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	odd, first := map[filesOrigin]string{}, map[project]sighting{}
	for _, s := range all {
		before, known := first[s.project]
		if !known {
			before = s
			first[s.project] = s
		}
		why, err := a.oddity(ctx, s.filesOrigin, before.host, before.seq, upstreams)
		if err != nil {
			return nil, err
		}
		if why != "" {
			odd[s.filesOrigin] = why
		}
	}
	return odd, nil
}

// oddity says what is odd about a source, "" if nothing is. first is where the
// project's first file came from, by record seq.
func (a *asking) oddity(ctx context.Context, from filesOrigin, first int64, seq uint64, upstreams map[string][]string) (string, error) {
	host, err := a.textByID(ctx, from.host)
	if err != nil {
		return "", err
	}
	if host == "" {
		return "its source is not on record", nil
	}
	if from.host != first {
		before, err := a.textByID(ctx, first)
		return fmt.Sprintf("the project's first file, record %d, came from %s", seq, before), err
	}
	ecosystem, err := a.textByID(ctx, from.ecosystem)
	if err != nil {
		return "", err
	}
	if upstreams != nil && !slices.Contains(upstreams[ecosystem], host) {
		return "it is not an upstream of " + ecosystem, nil
	}
	return "", nil
}
