package gateway_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
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
	g.door.rule(func(_ pkgref.Ref, f admission.File) policy.Decision {
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
