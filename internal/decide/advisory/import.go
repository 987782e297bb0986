package advisory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Job is what to import.
type Job struct {
	Path  string // absolute
	Label string // names the source; "" is Path's base name
	// Popular tells that Path is a popularity list of that ecosystem; "" lets
	// the file tell.
	Popular pkgref.Ecosystem
	// KeepGoing leaves out what can't be read; otherwise it fails the import.
	KeepGoing bool
	// Before is called when all was read and nothing is replaced yet; its error
	// ends the import. May be nil.
	Before func(api.AdvisorySource) error

	uploaded *os.File // read in place of Path; nil: Path is
}

// Progress is one step of an import; Percent 0 is not known.
type Progress struct {
	Step    string
	Detail  string
	Percent int
}

// importing is one import on its way.
type importing struct {
	db       *DB
	job      Job
	progress func(Progress)
	report   api.AdvisoryImport
	builder  tableBuilder
	reader   recordReader
}

// Import reads what the job names, and when all of it is on the disk puts it in
// the place of what the label had imported before; facts change at that moment
// and for all. progress is called in this goroutine. With an error nothing was
// replaced, and the report tells how far it came.
func (db *DB) Import(ctx context.Context, job Job, progress func(Progress)) (api.AdvisoryImport, error) {
	if !db.writing.TryLock() {
		return api.AdvisoryImport{}, errBusy()
	}
	defer db.writing.Unlock()
	i := &importing{db: db, job: job, progress: progress}
	i.report.Alarms = []api.AdvisoryAlarm{}
	err := i.runImport(ctx)
	return i.report, err
}

func (i *importing) runImport(ctx context.Context) error {
	if err := i.checkJob(); err != nil {
		return err
	}
	m, err := i.db.prepareDir()
	if err != nil {
		return err
	}
	s := source{
		Label: i.job.Label, Path: i.job.Path, Kind: KindMalware, Imported: i.db.options.Clock().UTC(),
		Packages: map[pkgref.Ecosystem]int{},
	}
	data, err := i.readSource(ctx, &s)
	if err != nil {
		return err
	}
	if err := i.checkReplacement(m, s); err != nil {
		return err
	}
	i.progress(Progress{Step: "store"})
	if err := i.storeFile(m, s, data); err != nil {
		return err
	}
	i.report.Generation = i.db.Generation()
	if damage := i.db.Damage(); damage != nil {
		i.report.Damage = damage.Error()
	}
	return nil
}

func (i *importing) checkJob() error {
	if i.job.uploaded == nil {
		if !filepath.IsAbs(i.job.Path) {
			return fault.Invalid("what to import must be named by its absolute path, not %q", text.Shorten(i.job.Path, maxQuoted))
		}
		i.job.Path = filepath.Clean(i.job.Path)
		if i.job.Label == "" {
			i.job.Label = filepath.Base(i.job.Path)
		}
	}
	if !isLabel(i.job.Label) {
		return fault.Invalid("%q can't be a label: it is letters, digits and -_. , at most %d, and begins with a letter or digit", text.Shorten(i.job.Label, maxQuoted), longestLabel)
	}
	if i.job.Label == ShippedLabel {
		return fault.Invalid("the label %q is for what comes with the product", ShippedLabel)
	}
	if i.job.Popular != "" {
		_, err := pkgref.ParseEcosystem(string(i.job.Popular))
		return err
	}
	return nil
}

// describeImported names what is imported, for messages.
func (i *importing) describeImported() string {
	if i.job.uploaded != nil {
		return "the upload"
	}
	return i.job.Path
}

const longestLabel = 64

func isLabel(s string) bool {
	return s != "" && len(s) <= longestLabel && !strings.ContainsAny(s[:1], "-_.") &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// readSource makes the bytes that are to be kept and fills in the source.
func (i *importing) readSource(ctx context.Context, s *source) ([]byte, error) {
	f := i.job.uploaded
	if f == nil {
		p, err := i.openPath()
		if err != nil {
			return nil, err
		}
		defer p.Close()
		if p.ID.Type == hostpath.Dir {
			return i.readDirectory(ctx, p, s)
		}
		if f, err = p.Reader(); err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "what to import can't be opened")
		}
		defer f.Close()
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "%s can't be read", i.describeImported())
	}
	isList := i.job.Popular != ""
	if !isList {
		if isList, err = looksLikeList(f); err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "%s can't be read", i.describeImported())
		}
	}
	if isList {
		s.Kind = KindPopular
		return i.readList(f, info.Size(), s)
	}
	i.reader = recordReader{limits: i.db.options.limits, visit: i.visitRecord}
	i.builder.limit = i.db.options.limits.table
	if err := i.reader.readPath(ctx, i.describeImported(), f, info); err != nil {
		return nil, err
	}
	if i.reader.single && i.report.Unreadable == 1 {
		reason := i.report.Problems[0].Reason
		i.report.Problems = nil // the error says it
		return nil, fault.Invalid("%s can't be imported (%s); import an OSV record, a zip or a directory of records, or a list of names with --popular ECOSYSTEM",
			i.describeImported(), reason)
	}
	return i.finishRecords(s)
}

// openPath opens what is imported, once, and through no link that an agent could have left.
func (i *importing) openPath() (*hostpath.Path, error) {
	var trees []hostpath.Tree
	if i.db.options.Trees != nil {
		trees = i.db.options.Trees()
	}
	p, err := hostpath.Resolve(i.job.Path, trees)
	_, other := errors.AsType[*hostpath.TypeError](err)
	link, leads := errors.AsType[*hostpath.LinkError](err)
	switch {
	case other:
		return nil, fault.Invalid("%s is neither a directory nor a regular file", i.describeImported())
	case leads:
		return nil, fault.Invalid("%s leads through %s; name what it leads to", i.describeImported(), link.Reason())
	case err != nil:
		return nil, fault.Wrap(fault.ErrInvalid, err, "what to import can't be opened")
	}
	return p, nil
}

// readDirectory reads a directory of records.
func (i *importing) readDirectory(ctx context.Context, p *hostpath.Path, s *source) ([]byte, error) {
	if i.job.Popular != "" {
		return nil, fault.Invalid("%s is a directory, and a popularity list is a file", i.describeImported())
	}
	i.reader = recordReader{limits: i.db.options.limits, visit: i.visitRecord}
	i.builder.limit = i.db.options.limits.table
	if err := i.reader.directory(ctx, p); err != nil {
		return nil, err
	}
	return i.finishRecords(s)
}

// looksLikeList tells a list that names its ecosystem from OSV records.
func looksLikeList(f *os.File) (bool, error) {
	head := make([]byte, len(ecosystemHeader))
	n, err := f.ReadAt(head, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(head[:n]) == ecosystemHeader, err
}

// visitRecord takes one record.
func (i *importing) visitRecord(file recordFile) error {
	i.report.Records++
	if i.report.Records%1000 == 0 {
		i.progress(Progress{Step: "read", Detail: fmt.Sprintf("%d records", i.report.Records), Percent: file.percent})
	}
	if file.withdrawn {
		i.report.Withdrawn++
		return nil
	}
	var r reading
	err := file.err
	if err == nil {
		r, err = readRecord(file.data, i.db.options.Clock())
	}
	if err != nil {
		i.unreadable(file.name, err)
		return nil
	}
	i.report.Withdrawn += boolInt(r.withdrawn)
	i.report.Other += boolInt(r.pointless)
	i.report.Elsewhere += r.elsewhere
	i.report.Unnamed += r.unnamed
	i.report.Widened += len(r.widened)
	i.report.WidenedOf = append(i.report.WidenedOf, r.widened[:min(len(r.widened), mostReported-len(i.report.WidenedOf))]...)
	for _, m := range r.malicious {
		if err := i.builder.addMalicious(m); err != nil {
			return err
		}
	}
	for _, v := range r.vulnerable {
		if err := i.builder.addVulnerable(v); err != nil {
			return err
		}
	}
	return nil
}

func (i *importing) unreadable(where string, reason error) {
	i.report.Unreadable++
	if len(i.report.Problems) < mostReported {
		i.report.Problems = append(i.report.Problems, api.ImportProblem{Where: where, Reason: text.Shorten(reason.Error(), maxQuoted)})
	}
}

func (i *importing) finishRecords(s *source) ([]byte, error) {
	if err := i.checkComplete("records"); err != nil {
		return nil, err
	}
	data, counted := i.builder.encodeTable()
	s.Advisories, s.Burnt, s.Packages, s.LeftOut = counted.advisories, counted.burnt, counted.packages, i.report.Unreadable
	s.Vulnerabilities, s.Vulnerable = counted.vulnerabilities, counted.vulnerable
	if len(counted.packages)+len(counted.vulnerable) == 0 {
		return nil, fault.Invalid("%s has no advisory about a package of a known ecosystem among its %d records, so nothing was replaced; to forget what %q imported, run: cofferdam advisory remove %s",
			i.describeImported(), i.report.Records, i.job.Label, i.job.Label)
	}
	return data, nil
}

// checkComplete fails an import of which something can't be read.
func (i *importing) checkComplete(what string) error {
	if i.report.Unreadable == 0 || i.job.KeepGoing {
		return nil
	}
	return fault.Invalid("%d of %d %s of %s can't be read, so nothing was replaced; mend or remove them, or import without them with --keep-going",
		i.report.Unreadable, i.report.Records, what, i.describeImported())
}

func (i *importing) readList(f *os.File, size int64, s *source) ([]byte, error) {
	if most := i.db.options.limits.list; size > most {
		return nil, fault.Invalid("%s is larger than %d MiB", i.describeImported(), most>>20)
	}
	list, err := readNames(io.NewSectionReader(f, 0, size), i.job.Popular)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "%s can't be imported", i.describeImported())
	}
	i.report.Records, i.report.Unreadable = list.lines, list.badLines
	i.report.Repeated, i.report.Beyond = list.repeated, list.leftOut
	for _, b := range list.bad {
		i.report.Problems = append(i.report.Problems, api.ImportProblem{Where: fmt.Sprintf("line %d", b.line), Reason: b.reason})
	}
	if err := i.checkComplete("lines"); err != nil {
		return nil, err
	}
	if len(list.names) == 0 {
		return nil, fault.Invalid("%s names no package, so nothing was replaced", i.describeImported())
	}
	s.Packages[list.ecosystem], s.LeftOut = len(list.names), list.badLines
	return list.encodeList(), nil
}

// checkReplacement refuses a replacement that would drop what it does not speak of.
func (i *importing) checkReplacement(m manifest, s source) error {
	before, known := m.findSource(s.Label)
	if !known {
		if len(m.Sources) >= maxSources {
			return fault.Invalid("there are %d sources already, the most that there can be; remove one", maxSources)
		}
		return nil
	}
	i.report.Replaced = new(before.viewSource())
	if before.Kind != s.Kind {
		return fault.New(fault.ErrConflict, "%q was imported as %s before, not %s; choose another label with --as, or remove it first", s.Label, before.Kind, s.Kind)
	}
	for _, e := range pkgref.Ecosystems() {
		if n := before.Packages[e]; n > 0 && s.Packages[e] == 0 {
			return fault.New(fault.ErrConflict, "%q has %d %s packages and %s has none, so nothing was replaced; choose another label with --as, or remove it first",
				s.Label, n, e, i.describeImported())
		}
		if n := before.Vulnerable[e]; n > 0 && s.Vulnerable[e] == 0 {
			return fault.New(fault.ErrConflict, "%q has vulnerabilities of %d %s packages and %s has none, so nothing was replaced; choose another label with --as, or remove it first",
				s.Label, n, e, i.describeImported())
		}
	}
	return nil
}

// storeFile writes the file, then the manifest that lists it.
func (i *importing) storeFile(m manifest, s source, data []byte) error {
	s.SHA256, s.Bytes = digest(data), int64(len(data))
	s.File = string(s.Kind) + "-" + s.SHA256[:16] + tableSuffix
	if err := replace(i.db.options.disk, filepath.Join(i.db.dir, s.File), data); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the advisory database can't be written")
	}
	i.report.Source = s.viewSource()
	if i.job.Before != nil {
		if err := i.job.Before(i.report.Source); err != nil {
			return err
		}
	}
	return i.db.commit(m.withSource(s))
}
