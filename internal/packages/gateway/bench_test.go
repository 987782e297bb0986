package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// serveAgain measures one warm request after another on one connection.
func serveAgain(b *testing.B, g *bench, url string) {
	b.Helper()
	c := g.client(sandboxA)
	get := func() {
		resp, err := c.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			b.Fatalf("%s: %v", resp.Status, err)
		}
		b.SetBytes(n)
	}
	get()
	for b.Loop() {
		get()
	}
}

func unlimited(c *gateway.Config) { c.Limits.Requests = 1 << 30 }

// largePages is for pages beyond the limits of the other tests.
func largePages(c *gateway.Config) {
	unlimited(c)
	c.Limits.Upstream.PageBytes, c.Limits.Upstream.PageTime, c.Limits.Upstream.PaceWindow = 100<<20, time.Minute, time.Minute
}

// The large page of the benchmarks: as many releases, as large as a packument
// can be.
const (
	largeSize     = 20 << 20
	largeReleases = 3000
)

// fetchPacked asks for a page as clients do, packed, and reads it to its end.
func fetchPacked(b *testing.B, c *http.Client, url string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := c.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != "gzip" {
		b.Fatalf("%s: %v", resp.Status, err)
	}
	b.ReportMetric(float64(n), "packed-B")
}

// BenchmarkPageCold20MB is a page that the gateway has never seen: fetched,
// read, kept, judged, rendered and sent. The upstream's work is in it.
func BenchmarkPageCold20MB(b *testing.B) {
	g, _ := newBulk(b, largePages)
	c := g.client(sandboxA)
	page := liar.Gzip(bulkType, packumentBytes(largeSize, largeReleases), 1)
	b.SetBytes(largeSize)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprintf("large%d", i)
		g.registry.Script(bulkHost+"/"+name, page)
		fetchPacked(b, c, "https://"+bulkHost+"/"+name)
	}
}

// BenchmarkPageAgain20MB is the same page under verdicts that it was not
// rendered under yet.
func BenchmarkPageAgain20MB(b *testing.B) {
	g, _ := newBulk(b, largePages)
	c := g.client(sandboxA)
	g.registry.Script(bulkHost+"/large", packument(largeSize, largeReleases))
	fetchPacked(b, c, "https://"+bulkHost+"/large")
	b.SetBytes(largeSize)
	b.ReportAllocs()
	for b.Loop() {
		g.door.rule(allowAll)
		fetchPacked(b, c, "https://"+bulkHost+"/large")
	}
}

// BenchmarkPageWarm20MB is the same page from memory.
func BenchmarkPageWarm20MB(b *testing.B) {
	g, _ := newBulk(b, largePages)
	c := g.client(sandboxA)
	g.registry.Script(bulkHost+"/large", packument(largeSize, largeReleases))
	fetchPacked(b, c, "https://"+bulkHost+"/large")
	b.SetBytes(largeSize)
	b.ReportAllocs()
	for b.Loop() {
		fetchPacked(b, c, "https://"+bulkHost+"/large")
	}
}

// BenchmarkIndex3000 is an index of 3,000 versions, half of them withheld,
// judged and served warm.
func BenchmarkIndex3000(b *testing.B) {
	g := newBench(b, unlimited)
	var dists []pypitest.Dist
	for i := range 3000 {
		d := pypitest.Dist{Name: "foo", Version: fmt.Sprintf("1.%d", i), Bytes: []byte{byte(i), byte(i >> 8)}}
		d.File = "foo-" + d.Version + "-py3-none-any.whl"
		dists = append(dists, d)
	}
	g.publish(dists...)
	g.door.rule(func(_ pkgref.Ref, f door.File) policy.Decision {
		if f.Digest > "sha256:8" {
			return policy.Decision{Effect: policy.Deny, Reason: "over the cap"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	serveAgain(b, g, "https://"+indexHost+"/simple/foo/")
}

// BenchmarkArtifact100MB is a cached artifact of 100 MB.
func BenchmarkArtifact100MB(b *testing.B) {
	g := newBench(b, unlimited)
	d := pypitest.Wheel(b, "big", "1.0")
	d.Bytes = pypitest.Zip(b, [2]string{"big-1.0.dist-info/METADATA", string(d.Metadata)}, [2]string{"noise", randomText(100 << 20)})
	g.publish(d)
	serveAgain(b, g, "https://"+filesHost+"/p/"+d.File)
}
