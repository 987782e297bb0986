package exchange

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAHostKeepsWhatOneRequestBrings: a host that gets the secret has it by one request, and somebody inside asks for it
// by another one, that gets none. An answer that stops within it there ends, too, and what breaks off does not come. The control:
// a host that gets no secret.
func TestAHostKeepsWhatOneRequestBrings(t *testing.T) {
	stops := []saying{{0, "."}, {0, guessed[:9]}, {time.Hour, "!"}}
	for name, c := range map[string]struct {
		gets  []Credential
		other []Credential
		kept  []string
		ends  bool
	}{
		"where it is swapped":     {[]Credential{swapping(Header)}, nil, nil, true},
		"on another of its ports": {nil, []Credential{swapping(Header)}, nil, true},
		"of another run":          {nil, nil, []string{"one"}, true},
		"the control":             {nil, nil, nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &lender{value: guessed}
			x := New(c.gets, map[string]string{"one": another}, l).Seek().OfHost(c.other).Kept(c.kept)
			got, _, err := watch(t, x, forms()["text"], stops, io.EOF)
			refused, is := errors.AsType[*Refused](err)
			if ends := is && refused.Leak && len(l.told) == 1; ends != c.ends || strings.Contains(got, guessed[:4]) == c.ends {
				t.Errorf("%s: what stops: %q, %v, %v is told", name, got, err, l.told)
			}
			got, _, _ = watch(t, x, forms()["text"], stops[:2], io.ErrUnexpectedEOF)
			if strings.Contains(got, guessed[:4]) == c.ends {
				t.Errorf("%s: what breaks off: %q", name, got)
			}
		})
	}
}
