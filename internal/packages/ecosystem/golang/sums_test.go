package golang_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
)

// foreign are records that are not about m alone, though each has something of it.
func foreign(m, other golangtest.Module) map[string]string {
	line := func(path, version, sum string) string { return path + " " + version + " " + sum + "\n" }
	zip, mod := line(m.Path, m.Version, m.ZipSum), line(m.Path, m.Version+"/go.mod", m.ModSum)
	return map[string]string{
		"another version's":                line(m.Path, other.Version, other.ZipSum) + line(m.Path, other.Version+"/go.mod", other.ModSum),
		"another version's zip":            line(m.Path, other.Version, other.ZipSum) + mod,
		"another version's zip alone":      line(m.Path, other.Version, other.ZipSum),
		"another version's go.mod":         zip + line(m.Path, other.Version+"/go.mod", other.ModSum),
		"another version's go.mod alone":   line(m.Path, other.Version+"/go.mod", other.ModSum),
		"another version's behind":         zip + mod + line(m.Path, other.Version, other.ZipSum),
		"another version's in front":       line(m.Path, other.Version, other.ZipSum) + zip + mod,
		"a version with this one's begin":  line(m.Path, m.Version+"0", other.ZipSum),
		"a version with this one's end":    line(m.Path, "v"+m.Version, other.ZipSum),
		"another module of this version":   line("example.com/other", m.Version, m.ZipSum) + line("example.com/other", m.Version+"/go.mod", m.ModSum),
		"a module with this one's begin":   line(m.Path+"/v2", m.Version, m.ZipSum) + mod,
		"this module in another spelling":  line(strings.ToLower(m.Path), m.Version, m.ZipSum) + mod,
		"another module's go.mod":          zip + line("example.com/other", m.Version+"/go.mod", m.ModSum),
		"its zip's digest twice":           zip + zip + mod,
		"another digest of its go.mod too": zip + mod + line(m.Path, m.Version+"/go.mod", other.ModSum),
	}
}

// TestARecordOfAnotherRelease: the database signs what is in its log, and says with
// that nothing on whether it is what was asked for.
func TestARecordOfAnotherRelease(t *testing.T) {
	ms := modules(t, 3)
	m, other := ms[1], ms[2]
	own := m.Path + " " + m.Version + " " + m.ZipSum + "\n" + m.Path + " " + m.Version + "/go.mod " + m.ModSum + "\n"
	if a, err := golang.Sums(own, m.Path, m.Version); err != nil || a.File != m.ZipSum || a.Attachment != m.ModSum { // positive control
		t.Fatalf("its own: %+v, %v", a, err)
	}
	for name, text := range foreign(m, other) {
		if a, err := golang.Sums(text, m.Path, m.Version); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, a, err)
		}
		d := golangtest.NewDatabase(t, "sum.example", ms[0])
		d.AddRecord(m.Escaped(t, ""), text) // signed, and in the log
		if a, err := attest(t, lend(d), m); err == nil {
			t.Errorf("%s, signed: %+v", name, a)
		}
	}
}
