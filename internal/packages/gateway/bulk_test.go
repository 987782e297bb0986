package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// bulk is a protocol with rows, tags, releases, forms and notices, as plain as
// can be. A page is lines: "tag NAME VERSION", or of a file its version, its
// time or "-", its digest or "-", and any text. A row is a line.
type bulk struct {
	parsed, drawn, listed atomic.Int64
	atEnd                 func() // called where most is in memory
	before                func() // called before a page is rendered
	refuses               bool   // a page of which nothing is allowed
}

const (
	bulkType = "text/bulk"
	bulkHost = "bulk.example"
)

func (*bulk) Ecosystem() pkgref.Ecosystem { return pkgref.Node }

func (*bulk) Route(place ecosystem.Place, r ecosystem.Request) (ecosystem.Route, error) {
	rest, ok := strings.CutPrefix(r.Path, place.Base)
	if !ok || rest == "" {
		return ecosystem.Route{}, fault.New(fault.ErrNotFound, "no such route")
	}
	project, release, _ := strings.Cut(rest, "/")
	return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: project, Release: release}, nil
}

func (*bulk) IndexAsk(base, project string) ecosystem.Ask {
	return ecosystem.Ask{URL: base + project, Accept: bulkType, Types: []string{bulkType}}
}

func (b *bulk) ParseIndex(project string, page ecosystem.Page, rows ecosystem.Rows) (*ecosystem.Index, error) {
	b.parsed.Add(1)
	base, err := url.Parse(page.URL)
	if err != nil {
		return nil, fault.Invalid("no URL")
	}
	ix := &ecosystem.Index{Project: project, Tags: map[string]string{}}
	lines := bufio.NewScanner(page.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), " ", 4)
		switch {
		case len(words) < 3:
			return nil, fault.Invalid("a line of %d words", len(words))
		case words[0] == "tag":
			ix.Tags[words[1]] = words[2]
			continue
		}
		f := ecosystem.File{Version: strings.Clone(words[0]), Kind: policy.KindPackage}
		f.Name = project + "-" + f.Version + ".tgz"
		host := bulkHost
		if len(words) > 3 && strings.HasPrefix(words[3], "at ") {
			host = strings.Fields(words[3])[1]
		}
		f.URL, f.Path, _, _ = ecosystem.ResolveFile(base, "https://"+host+":"+base.Port()+"/"+project+"/-/"+f.Name)
		if t, err := time.Parse(time.RFC3339, words[1]); err == nil {
			f.Published = t
		}
		if words[2] != "-" {
			f.Digest = strings.Clone(words[2])
		}
		row, err := rows.Append(append(lines.Bytes(), '\n'))
		if err != nil {
			return nil, err
		}
		f.Manifest, f.Rows = row, []ecosystem.Extent{row}
		ix.Files = append(ix.Files, f)
	}
	if b.atEnd != nil {
		b.atEnd()
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "no lines")
	}
	return ix, nil
}

func (*bulk) Form(accept string) ecosystem.Form {
	if strings.Contains(accept, "short") {
		return "short"
	}
	return "full"
}

func (*bulk) ContentType(form ecosystem.Form) string { return "text/" + string(form) }

func (b *bulk) Render(w io.Writer, ix *ecosystem.Index, rows io.ReaderAt, view ecosystem.View) error {
	b.drawn.Add(1)
	if b.before != nil {
		b.before()
	}
	some := false
	for i, f := range ix.Files {
		if !view.Verdicts[i].Allowed || view.Release != "" && view.Release != f.Version && ix.Tags[view.Release] != f.Version {
			continue
		}
		some = true
		row, err := ecosystem.Slice(rows, f.Rows[0])
		if err != nil {
			return err
		}
		if view.Form == "short" {
			row = append([]byte(f.Version), '\n')
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	if b.atEnd != nil {
		b.atEnd()
	}
	if !some && (b.refuses || view.Release != "") {
		return fault.New(fault.ErrForbidden, "nothing to show")
	}
	return nil
}

func (*bulk) Refuse(r ecosystem.Refusal) ecosystem.Answer {
	status := map[ecosystem.Cause]int{ecosystem.Missing: 404, ecosystem.NoSuchRoute: 404, ecosystem.ByPolicy: 403, ecosystem.Malformed: 400}[r.Cause]
	if status == 0 {
		status = 424
	}
	return ecosystem.Problem(status, r)
}

func (*bulk) Notice(r ecosystem.Refusal) map[string]string {
	return map[string]string{"X-Notice": ecosystem.Sentence(r)}
}

// Listed reads what follows "needs" in a row: NAME@SPECIFIER words.
func (b *bulk) Listed(_ ecosystem.File, row []byte) ([]ecosystem.Requirement, error) {
	b.listed.Add(1)
	_, needs, _ := strings.Cut(strings.TrimSpace(string(row)), " needs ")
	var out []ecosystem.Requirement
	for need := range strings.FieldsSeq(needs) {
		name, specifier, _ := strings.Cut(need, "@")
		out = append(out, ecosystem.Requirement{Name: name, Specifier: specifier, Direct: strings.Contains(specifier, ":")})
	}
	return out, nil
}

// newBulk is a bench whose upstream speaks bulk.
func newBulk(tb testing.TB, change func(*gateway.Config)) (*bench, *bulk) {
	tb.Helper()
	p := &bulk{}
	b := &bench{t: tb, registry: liar.New(tb, bulkHost, filesHost), door: newDoor(tb)}
	b.cfg = gateway.Config{
		CacheDir:  tb.TempDir(),
		Upstreams: []upstream.Config{{Ecosystem: pkgref.Node, Index: b.registry.URL(bulkHost, "/"), CAPEM: b.registry.CAPEM}},
		Protocols: []ecosystem.Protocol{p},
		Resolver:  b.registry,
		Version:   "test",
		Limits:    testLimits(),
	}
	if change != nil {
		change(&b.cfg)
	}
	b.start()
	return b, p
}

// bulkPage publishes lines of a project.
func (b *bench) bulkPage(project string, lines ...string) {
	b.registry.Script(bulkHost+"/"+project, liar.Body(bulkType, []byte(strings.Join(lines, "\n")+"\n")))
}

func (b *bench) bulkGet(path string, header ...string) answer {
	b.t.Helper()
	return b.do(sandboxA, "GET", "https://"+bulkHost+"/"+path, header...)
}

// packument streams a page of about size bytes with as many releases, of which
// none resembles another much.
func packument(size, releases int) liar.Reply {
	return liar.Stream(bulkType, func(i int) []byte {
		if i >= releases {
			return nil
		}
		return packumentLine(i, size/releases)
	})
}

func packumentBytes(size, releases int) []byte {
	var all []byte
	for i := range releases {
		all = append(all, packumentLine(i, size/releases)...)
	}
	return all
}

func packumentLine(i, size int) []byte {
	filler := make([]byte, 0, size+64)
	for n := i; len(filler) < size-180; n++ {
		filler = fmt.Appendf(filler, `"dependency-%d":"^%d.%d.%d",`, n%500, n%7, i%90, (n*i)%10)
	}
	return fmt.Appendf(nil, "1.%d.0 2026-01-02T03:04:05Z sha512:%0128x %s\n", i, i, filler)
}
