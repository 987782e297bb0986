package golang

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// Attest looks a release up in the checksum database. Whether an answer is in
// the log, and the log has only grown, is verified by the client that the go
// command uses too. A module that was looked up before is verified from the cache alone.
// ErrInvalid is kept for what was read and contradicts itself or what is known of
// the log; an answer that is no database's is ErrUnavailable.
func (Protocol) Attest(ctx context.Context, log ecosystem.Log, project, version string) (ecosystem.Attested, error) {
	if !isRelease(project, version) {
		return ecosystem.Attested{}, fault.New(fault.ErrNotFound, "%q is not a version that %s can have", redact.Cut(version, maxQuoted), redact.Cut(project, maxQuoted))
	}
	whole, verifier, err := openVerifier(log.Verifier())
	if err != nil {
		return ecosystem.Attested{}, err
	}
	d := newDatabase(ctx, log, whole, "lookup/"+escapePath(project)+"@"+escapeVersion(version))
	a, err := d.attest(verifier, project, version)
	if err != nil && d.cached.Load() && !d.missed && d.lie == "" {
		// A damaged cache is not the log's fault: once more, from the log itself.
		// (Two histories are proved by signed heads, whatever the cache holds.)
		d = d.withAnswer(nil, true)
		a, err = d.attest(verifier, project, version)
	}
	if err != nil || !d.grew {
		return a, err
	}
	return d.verifyInNewest(a, verifier, project, version)
}

// attest verifies one release's record.
func (d *database) attest(verifier note.Verifier, project, version string) (ecosystem.Attested, error) {
	if _, err := sumdb.NewClient(d).Lookup(project, version); err != nil {
		return ecosystem.Attested{}, d.categoriseError(err)
	}
	id, text, _, err := tlog.ParseRecord(d.answer)
	if err != nil {
		return ecosystem.Attested{}, fault.Wrap(fault.ErrInvalid, err, "the checksum database's record can't be read")
	}
	a, err := parseSums(string(text), project, version)
	if err != nil {
		return ecosystem.Attested{}, err
	}
	a.Position = id
	a.Size, err = d.newestSize(verifier)
	return a, err
}

// verifyInNewest verifies the record again in the log's newest head, since a record's own
// may be as old as whoever relays it kept it for. There may be no newer one: then
// the log is as large as the record's says.
func (d *database) verifyInNewest(a ecosystem.Attested, verifier note.Verifier, project, version string) (ecosystem.Attested, error) {
	head, err := d.remote("latest")
	if err != nil {
		return a, nil //nolint:nilerr // the record is verified; only the log's size stays as it was
	}
	text, _, _ := strings.Cut(string(head), "\n\n")
	tree, err := tlog.ParseTree([]byte(text + "\n"))
	if err != nil || tree.N <= a.Size {
		return a, nil //nolint:nilerr // as above
	}
	_, _, own, err := tlog.ParseRecord(d.answer)
	if err != nil {
		return a, nil //nolint:nilerr // not reached: attest read it
	}
	record := d.answer[:len(d.answer)-len(own)]
	grown, err := d.withAnswer(slices.Concat(record, head), d.fresh).attest(verifier, project, version)
	if errors.Is(err, fault.ErrInvalid) {
		return ecosystem.Attested{}, err
	}
	if err != nil {
		return a, nil //nolint:nilerr // as above
	}
	return grown, nil
}

// newestSize is the newest head that was verified.
func (d *database) newestSize(verifier note.Verifier) (int64, error) {
	head, err := d.log.Config(verifier.Name() + "/latest")
	if err != nil {
		return 0, err
	}
	n, err := note.Open(head, note.VerifierList(verifier))
	if err != nil {
		return 0, fault.Wrap(fault.ErrInvalid, err, "the kept head of the checksum database is not signed by it")
	}
	tree, err := tlog.ParseTree([]byte(n.Text))
	if err != nil {
		return 0, fault.Wrap(fault.ErrInvalid, err, "the kept head of the checksum database can't be read")
	}
	return tree.N, nil
}

// parseSums reads a record: the two digests of the release that was asked for, each
// once, and nothing of any other.
func parseSums(text, project, version string) (ecosystem.Attested, error) {
	var a ecosystem.Attested
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(f) != 3 || f[0] != project || !isDigestLine(f[2]) {
			return ecosystem.Attested{}, fault.Invalid("the checksum database answered with a record that is not about %s", redact.Cut(project, maxQuoted))
		}
		sum := &a.File
		switch f[1] {
		case version:
		case version + "/go.mod":
			sum = &a.Attachment
		default:
			return ecosystem.Attested{}, fault.Invalid("the checksum database answered with a record of another version than %s", redact.Cut(version, maxQuoted))
		}
		if *sum != "" {
			return ecosystem.Attested{}, fault.Invalid("the checksum database's record has a digest twice")
		}
		*sum = f[2]
	}
	return a, nil
}
