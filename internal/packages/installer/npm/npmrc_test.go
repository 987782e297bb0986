package npm

import (
	"net/url"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
)

func FuzzNpmrc(f *testing.F) {
	f.Add("//a.example/:_authToken=${X}\n[s]\n;c\n", "https://a.example/b/c/")
	f.Fuzz(func(_ *testing.T, text, registry string) {
		rc := npmrc{}
		rc.parseLines(text, []string{"X=y"})
		if u, err := url.Parse(registry); err == nil {
			rc.credentials(u, &discover.Said{})
		}
	})
}
