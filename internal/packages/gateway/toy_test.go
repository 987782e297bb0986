package gateway_test

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// toy is a small protocol with the abilities that files have: BASE/NAME is a
// page, BASE/NAME/VERSION.pkg a file, BASE/NAME/VERSION.mod and .info are
// attachments, BASE/keys and BASE/sumdb/... are relayed, BASE/audit is answered.
type toy struct {
	eco    pkgref.Ecosystem
	looked *atomic.Int64 // inspections
}

func newToy(eco pkgref.Ecosystem) toy { return toy{eco: eco, looked: new(atomic.Int64)} }

// toyFile is a line of a page, and toyPackage a file.
type (
	toyFile struct {
		Version, Digest, Sidecar string
		Requires                 []string // the manifest
	}
	toyPackage struct {
		Name, Version     string
		Requires, Scripts []string
		Bundled           []ecosystem.Bundled
		Findings          []string
		Direct, Sidecar   string
		Hostile           string // why the container is refused
	}
)

func (p toyPackage) bytes() []byte {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return data
}

func (t toy) Ecosystem() pkgref.Ecosystem { return t.eco }

func (t toy) Route(place ecosystem.Place, r ecosystem.Request) (ecosystem.Route, error) {
	below, ok := strings.CutPrefix(r.Path, place.Base)
	if !ok || place.Base == "" || r.Query != "" {
		return ecosystem.Route{}, fault.New(fault.ErrNotFound, "no such page")
	}
	if r.Path == place.Base+"audit" {
		return ecosystem.Route{Kind: ecosystem.RouteAnswered, Answer: &ecosystem.Answer{
			Status: 200, ContentType: "text/plain", Body: []byte("nothing"), Header: map[string]string{"X-Notice": "judged elsewhere"},
		}}, nil
	}
	if rest, ok := strings.CutPrefix(below, "sumdb/"); ok {
		route := ecosystem.Route{Kind: ecosystem.RoutePass, File: rest, Immutable: strings.Contains(rest, "/tile/")}
		if whole, width, ok := strings.Cut(rest, ".p/"); ok {
			route.Whole = whole
			route.Part, _ = strconv.Atoi(width)
		}
		route.Log, _, _ = strings.Cut(rest, "/")
		if _, release, ok := strings.Cut(rest, "/lookup/"); ok {
			route.Project, route.Version, _ = strings.Cut(release, "@")
		}
		return route, nil
	}
	if below == "keys" {
		return ecosystem.Route{Kind: ecosystem.RoutePass, File: below}, nil
	}
	name, file, _ := strings.Cut(below, "/")
	if file == "" {
		return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: name}, nil
	}
	stem, ext, _ := strings.Cut(strings.ReplaceAll(file, ".", " "), " ")
	for _, ext = range []string{".pkg", ".mod", ".info"} {
		if v, ok := strings.CutSuffix(file, ext); ok {
			stem = v
			break
		}
	}
	route := ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: name, File: file, Version: stem, Path: r.Path}
	if ext == ".pkg" {
		route.Kind = ecosystem.RouteFile
	}
	route.Query = stem == "main"
	return route, nil
}

func (toy) IndexAsk(base, project string) ecosystem.Ask { return ecosystem.Ask{URL: base + project} }

func (toy) ParseIndex(project string, page ecosystem.Page, rows ecosystem.Rows) (*ecosystem.Index, error) {
	var files []toyFile
	if err := json.NewDecoder(page.Body).Decode(&files); err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the page is no JSON")
	}
	ix := &ecosystem.Index{Project: project}
	for _, f := range files {
		manifest, err := json.Marshal(f.Requires)
		if err != nil {
			return nil, err
		}
		row, err := rows.Append(manifest)
		if err != nil {
			return nil, err
		}
		file := toyNamed(strings.TrimSuffix(page.URL, project), project, f.Version)
		file.Digest, file.Sidecar, file.Manifest = f.Digest, f.Sidecar, row
		ix.Files = append(ix.Files, file)
	}
	return ix, nil
}

func toyNamed(base, project, version string) ecosystem.File {
	f := ecosystem.File{Name: version + ".pkg", Version: version, Kind: policy.KindPackage, URL: base + project + "/" + version + ".pkg"}
	u, err := url.Parse(f.URL)
	if err != nil {
		panic(err)
	}
	f.Path = u.Path
	return f
}

func (toy) Form(string) ecosystem.Form        { return "text" }
func (toy) ContentType(ecosystem.Form) string { return "text/plain" }

func (toy) Render(w io.Writer, ix *ecosystem.Index, _ io.ReaderAt, view ecosystem.View) error {
	for i, f := range ix.Files {
		if view.Verdicts[i].Allowed {
			fmt.Fprintln(w, f.ClientURL())
		}
	}
	return nil
}

func (toy) Refuse(r ecosystem.Refusal) ecosystem.Answer {
	status := map[ecosystem.Cause]int{ecosystem.ByPolicy: 403, ecosystem.Malformed: 400, ecosystem.Missing: 404, ecosystem.NoSuchRoute: 404}[r.Cause]
	if status == 0 {
		status = 424
	}
	return ecosystem.Problem(status, r)
}

func (t toy) Inspect(_ ecosystem.File, row []byte, content ecosystem.Content) (ecosystem.Inspection, error) {
	t.looked.Add(1)
	data := make([]byte, content.Size())
	if _, err := content.ReadAt(data, 0); err != nil {
		return ecosystem.Inspection{}, err
	}
	var p toyPackage
	if err := json.Unmarshal(data, &p); err != nil {
		return ecosystem.Inspection{}, fault.Invalid("the file is no package")
	}
	if p.Hostile != "" {
		return ecosystem.Inspection{}, fault.Invalid("%s", p.Hostile)
	}
	found := ecosystem.Inspection{Scripts: p.Scripts, Bundled: p.Bundled, Findings: p.Findings, Sidecar: p.Sidecar}
	found.Name, found.Version = p.Name, p.Version
	for _, name := range p.Requires {
		if row != nil && !strings.Contains(string(row), name) {
			return ecosystem.Inspection{}, fault.Invalid("the file requires %s, which the index does not say", name)
		}
		found.Requirements = append(found.Requirements, ecosystem.Requirement{Name: name})
	}
	if p.Direct != "" {
		found.Requirements = append(found.Requirements, ecosystem.Requirement{Name: p.Direct, Direct: true})
	}
	return found, nil
}

func (toy) AttachmentAsk(base string, r ecosystem.Route) ecosystem.Ask {
	return ecosystem.Ask{URL: base + r.Project + "/" + r.File}
}

// Attachment is "VERSION REQUIREMENT...".
func (toy) Attachment(r ecosystem.Route, body []byte) (ecosystem.Attachment, error) {
	words := strings.Fields(string(body))
	if len(words) == 0 || strings.HasPrefix(words[0], "<") {
		return ecosystem.Attachment{}, fault.Invalid("the attachment can't be read")
	}
	a := ecosystem.Attachment{Version: words[0], ContentType: "text/x-toy", Body: body, Witnessed: strings.HasSuffix(r.File, ".mod")}
	for _, name := range words[1:] {
		a.Requirements = append(a.Requirements, ecosystem.Requirement{Name: name})
	}
	return a, nil
}

func (toy) PassAsk(base string, r ecosystem.Route) ecosystem.Ask {
	if r.File == "keys" {
		return ecosystem.Ask{URL: base + r.File}
	}
	return ecosystem.Ask{URL: base + "sumdb/" + r.File, Most: 100}
}

func (toy) Toolchain(project string) bool { return project == "compiler" }

// addressed is a toy whose files have addresses.
type addressed struct{ toy }

func (addressed) Addressed(base string, r ecosystem.Route) (ecosystem.File, error) {
	return toyNamed(base, r.Project, r.Version), nil
}

// witnessed is a toy whose digests come from a log. A record is JSON, with the
// log's size in it, and the log may not shrink.
type witnessed struct{ addressed }

type toyRecord struct {
	File, Attachment string
	Position, Size   int64
	Lie              string
}

func (w witnessed) Attest(ctx context.Context, log ecosystem.Log, project, version string) (ecosystem.Attested, error) {
	if log.Verifier() != toyLog {
		return ecosystem.Attested{}, fault.Invalid("another log")
	}
	data, err := log.Remote(ctx, "/lookup/"+project+"@"+version)
	if err != nil {
		return ecosystem.Attested{}, err
	}
	var r toyRecord
	if err := json.Unmarshal(data, &r); err != nil || r.Lie != "" {
		return ecosystem.Attested{}, fault.Invalid("%s", "the record is not in the log"+r.Lie)
	}
	head, err := log.Config("head")
	if err != nil {
		return ecosystem.Attested{}, err
	}
	var size int64
	if _, err := fmt.Sscan(string(head), &size); len(head) > 0 && err != nil {
		return ecosystem.Attested{}, err
	}
	if r.Size < size {
		return ecosystem.Attested{}, fault.Invalid("the log has shrunk")
	}
	if r.Size > size {
		err := log.Replace("head", head, fmt.Append(nil, r.Size))
		if errors.Is(err, fault.ErrConflict) { // another lookup was first
			return w.Attest(ctx, log, project, version)
		}
		if err != nil {
			return ecosystem.Attested{}, err
		}
	}
	return ecosystem.Attested{File: r.File, Attachment: r.Attachment, Position: r.Position, Size: r.Size}, nil
}

// toySum is a digest in the log's own way.
func toySum(body []byte) string {
	sum := sha256.Sum256(append([]byte("toy"), body...))
	return "h1:" + hex.EncodeToString(sum[:])
}

func (witnessed) SumFile(_ ecosystem.File, content ecosystem.Content) (string, error) {
	data := make([]byte, content.Size())
	_, err := content.ReadAt(data, 0)
	return toySum(data), err
}

func (witnessed) SumAttachment(_ ecosystem.Route, body []byte) (string, error) {
	return toySum(body), nil
}

// Head is never needed: what a toy's log has needs no records.
func (witnessed) Head(string, []byte) (int64, error) { return 0, fault.Invalid("no head") }

func (witnessed) HeadPath() string { return "latest" }

// shippedSize is when the log is known to have had ten records.
const shippedSize = 1_600_000_000

func (witnessed) VerifierOf(named string) (string, error) { return named, nil }

func (witnessed) Known(string) []ecosystem.LogSize {
	return []ecosystem.LogSize{{Size: 10, Unix: shippedSize}}
}

// toyLog is the log's verifier.
const toyLog = "sum.example+1234+key"

var (
	_ ecosystem.Inspector      = toy{}
	_ ecosystem.Attacher       = toy{}
	_ ecosystem.PassThrough    = toy{}
	_ ecosystem.ToolchainNamer = toy{}
	_ ecosystem.Addresser      = addressed{}
	_ ecosystem.Witness        = witnessed{}
)

// newToyBench has one upstream, of a toy at the root of the index's host.
func newToyBench(t *testing.T, p ecosystem.Protocol, change func(*bench, *upstream.Config)) *bench {
	t.Helper()
	b := &bench{t: t, registry: liar.New(t, indexHost, filesHost), door: newDoor(t)}
	u := upstream.Config{Ecosystem: p.Ecosystem(), Index: b.registry.URL(indexHost, "/"), CAPEM: b.registry.CAPEM}
	b.cfg = gateway.Config{CacheDir: t.TempDir(), Protocols: []ecosystem.Protocol{p}, Resolver: b.registry, Version: "test", Limits: testLimits()}
	if change != nil {
		change(b, &u)
	}
	b.cfg.Upstreams = append(b.cfg.Upstreams, u)
	b.start()
	return b
}

// list publishes a page, and file the bytes of a release.
func (b *bench) list(host, project string, files ...toyFile) {
	data, err := json.Marshal(files)
	if err != nil {
		b.t.Fatal(err)
	}
	b.registry.Script(host+"/"+project, liar.Body("application/json", data))
}

func (b *bench) file(host string, p toyPackage) []byte {
	b.registry.Script(host+"/"+p.Name+"/"+p.Version+".pkg", liar.Body("application/zip", p.bytes()))
	return p.bytes()
}

// record puts a release into the log.
func (b *bench) record(release string, r toyRecord) {
	data, err := json.Marshal(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.registry.Script(indexHost+"/sumdb/sum.example/lookup/"+release, liar.Body("text/plain", data))
}

func sha256Of(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func sha1Of(b []byte) string {
	sum := sha1.Sum(b)
	return "sha1:" + hex.EncodeToString(sum[:])
}

func bodyOf(body []byte) liar.Reply { return liar.Body("application/zip", body) }
