package pip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// judge is what pip's own copy of packaging says of each requirement: its name with its extras, whether it has an address, and the clauses of its versions.
const judge = `
import json, sys
from pip._vendor.packaging.requirements import Requirement
def one(text):
    try:
        r = Requirement(text)
    except Exception: # of some releases: InvalidSpecifier
        return None
    return {"Name": r.name, "Extras": sorted(r.extras), "URL": r.url or "",
            "Among": sorted(set(str(s) for s in r.specifier)) if not r.marker else []}
json.dump([one(t) for t in json.load(sys.stdin)], sys.stdout)
`

// said is what packaging says of a requirement.
type said struct {
	Name   string
	Extras []string
	URL    string
	Among  []string // the clauses of its versions; none where a marker decides
}

// rounds is how many of something are made: all, if COFFERDAM_LONG is set.
func rounds(all int) int {
	if os.Getenv("COFFERDAM_LONG") == "" {
		return all / 10
	}
	return all
}

func ask(t *testing.T, program string, in, out any) {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-c", program)
	var printed, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &printed, &complaint
	if err := cmd.Run(); err != nil {
		t.Fatalf("INCONCLUSIVE: python3 with pip is needed to compare with: %v\n%s", err, complaint.String())
	}
	if err := json.Unmarshal(printed.Bytes(), out); err != nil {
		t.Fatal(err)
	}
}

// spelling makes a requirement as somebody may write it; about one in ten is none.
func spelling(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	blank := func() string { return pick("", "", " ", "  ", "\t") }
	version := func() string { return pick("1", "4.2", "1.0.0rc1", "2!3.1", "1.0+local", "3.*") }
	clause := func() string {
		return pick("==", ">=", "<=", "<", ">", "!=", "~=", "===") + blank() + version()
	}
	var b strings.Builder
	b.WriteString(blank() + pick("Django", "idna", "six", "a", "zope.interface", "ruamel_yaml", "A-b.C_d", "x2", "-bad", "bad-", "b@d", "", "é"))
	b.WriteString(blank())
	if r.IntN(3) == 0 {
		b.WriteString("[" + blank() + pick("", "dev", "a,b", "a , b", "A.b-c", "a,,b", "a b") + blank() + "]" + blank())
	}
	switch r.IntN(8) {
	case 0:
		b.WriteString("@" + blank() + pick("https://x.example/a.whl", "git+https://x.example/a.git@v1", "file:///a", ""))
		if r.IntN(2) == 0 {
			b.WriteString(" ; python_version>'3'")
		}
		return b.String()
	case 1:
		b.WriteString("(" + clause() + ")")
	case 2, 3, 4:
		b.WriteString(clause())
		for range r.IntN(3) {
			b.WriteString(blank() + "," + blank() + clause())
		}
	case 5:
		b.WriteString(pick("what is this", "=1", "1.0", "$x", ")"))
	default:
	}
	if r.IntN(4) == 0 {
		b.WriteString(blank() + ";" + blank() + pick(`python_version > "3"`, "sys_platform == 'win32'", "extra == 'x'"))
	}
	return b.String() + blank()
}

// TestRequirementsAsPackagingReadsThem: of 100,000 spellings (a tenth of that in a short run), those that
// packaging reads have the name and extras that it says. One that it refuses may be read here, since pip
// then refuses the file; but never under another name than it begins with.
func TestRequirementsAsPackagingReadsThem(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, rounds(100_000))
	for i := range texts {
		texts[i] = spelling(r)
	}
	var all []*said
	ask(t, judge, texts, &all)
	read, refused := 0, 0
	for i, want := range all {
		got, ok := parseRequirement(texts[i])
		if want == nil {
			refused++
			continue
		}
		read++
		name, extras, _ := strings.Cut(got.name, "[")
		var list []string
		for one := range strings.SplitSeq(strings.Trim(extras, "]"), ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		slices.Sort(list)
		if !ok || name != want.Name || !slices.Equal(slices.Compact(list), want.Extras) || (got.url != "") != (want.URL != "") {
			t.Fatalf("%q: packaging says %+v, and here it is %+v, %t", texts[i], *want, got, ok)
		}
		var clauses []string
		for one := range strings.SplitSeq(strings.Join(strings.Fields(got.among), ""), ",") {
			if one != "" {
				clauses = append(clauses, one)
			}
		}
		slices.Sort(clauses)
		if clauses = slices.Compact(clauses); !slices.Equal(clauses, want.Among) {
			t.Fatalf("%q: packaging says %q of its versions, and here they are %q", texts[i], want.Among, got.among)
		}
	}
	if read < len(texts)/3 || refused < len(texts)/50 {
		t.Errorf("INCONCLUSIVE: packaging read %d and refused %d", read, refused)
	}
}

// judgeFiles is what pip's own reader of requirements files gives for each of them.
const judgeFiles = `
import json, os, sys
from pip._internal.req.req_file import parse_requirements
from pip._internal.network.session import PipSession
session = PipSession()
def one(file):
    os.chdir(os.path.dirname(file))
    try:
        return [{"Text": r.requirement, "Editable": r.is_editable} for r in parse_requirements(file, session) if not r.constraint]
    except BaseException as e:
        return None
json.dump([one(f) for f in json.load(sys.stdin)], sys.stdout)
`

// requirementsFile makes one, with what people write into them.
func requirementsFile(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	var b strings.Builder
	b.WriteString(pick("", "", "", "\ufeff"))
	for range 1 + r.IntN(8) {
		switch r.IntN(12) {
		case 0:
			b.WriteString(pick("# a comment", "   # another", "#six", ""))
		case 1:
			b.WriteString("-r " + pick("more.txt", "sub/more.txt"))
		case 2:
			b.WriteString(pick("--requirement=more.txt", "-rmore.txt", "--requirement more.txt"))
		case 3:
			b.WriteString(pick("-c constraints.txt", "--index-url https://x.example/simple", "--extra-index-url=https://y.example/", "--no-binary :all:", "--pre", "--trusted-host x.example"))
		case 4:
			b.WriteString("idna==3.7 \\\n    --hash=sha256:" + strings.Repeat("a", 64) + pick("", " \\\n    --hash=sha256:"+strings.Repeat("b", 64)))
		case 5:
			b.WriteString("rich \\\n  >= 13")
		case 6:
			b.WriteString(pick("https://x.example/a-1.0-py3-none-any.whl", "git+https://x.example/a.git#egg=a", "./sub", "x @ https://x.example/x.whl"))
		default:
			for text := ""; ; {
				if text = spelling(r); strings.TrimSpace(text) != "" {
					b.WriteString(text)
					break
				}
			}
		}
		b.WriteString(pick("", "", " # why", "\t#why") + pick("\n", "\n", "\r\n"))
	}
	return b.String()
}

// TestRequirementsFilesAsPipReadsThem: of what pip itself finds in 3,000 files (a tenth of that in a short run), each requirement by name is a root or is named among
// what was left out.
func TestRequirementsFilesAsPipReadsThem(t *testing.T) {
	t.Parallel()
	r, top := rand.New(rand.NewPCG(3, 4)), t.TempDir()
	var files []string
	for i := range rounds(3_000) {
		dir := filepath.Join(top, fmt.Sprint(i))
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"requirements.txt": requirementsFile(r), "more.txt": "anyio >= 4\n", "sub/more.txt": "-r deeper.txt\nsniffio\n", "sub/deeper.txt": "h11\n", "constraints.txt": "certifi<2\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		files = append(files, filepath.Join(dir, "requirements.txt"))
	}
	var all [][]struct {
		Text     string
		Editable bool
	}
	ask(t, judgeFiles, files, &all)
	var texts []string
	for _, found := range all {
		for _, f := range found {
			texts = append(texts, f.Text)
		}
	}
	var names []*said
	ask(t, judge, texts, &names)
	next, read := 0, 0
	for i, found := range all {
		roots, leftOut := rootsOfFile(t, filepath.Dir(files[i]))
		elsewhere := map[string]bool{} // names that come from an address on another line
		for n := range found {
			if one := names[next+n]; one != nil && one.URL != "" {
				elsewhere[one.Name] = true
			}
			if strings.HasSuffix(found[n].Text, "#egg=a") || strings.Contains(found[n].Text, "/a-1.0-") {
				elsewhere["a"] = true
			}
		}
		for _, f := range found {
			want := names[next]
			next++
			switch {
			case want != nil && want.URL == "":
				if roots[want.Name] == elsewhere[want.Name] {
					t.Fatalf("pip finds %q in %q, and the roots are %v", f.Text, readFixture(t, files[i]), slices.Collect(maps.Keys(roots)))
				}
				read++
			case want == nil: // pip refuses the file
			case len(leftOut) == 0:
				t.Fatalf("pip finds %q in %q, and nothing is left out", f.Text, readFixture(t, files[i]))
			}
		}
		if found != nil && roots["certifi"] {
			t.Fatalf("a constraint asks for nothing: %q", readFixture(t, files[i]))
		}
	}
	if read < rounds(3_000) {
		t.Errorf("INCONCLUSIVE: pip found %d names", read)
	}
}

func readFixture(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// onDisk are the files of a directory.
type onDisk string

func (d onDisk) Read(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(string(d), path.Clean(name)))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return b, err
}

func (onDisk) Folders(string) (dirs, links []string, err error) { return nil, nil, nil }

// rootsOfFile are the names that a directory's requirements.txt asks for, without extras, and what was left out.
func rootsOfFile(t *testing.T, dir string) (roots map[string]bool, leftOut map[string]bool) {
	t.Helper()
	w := manifest.NewWants(onDisk(dir), func(name string) (string, bool) {
		name, _, _ = strings.Cut(name, "[")
		return strings.TrimSpace(name), name != ""
	})
	w.AssumePublic() // an index that a file names is another test's
	if _, err := w.Include(requirementsFormat(), RequirementsFile); err != nil {
		t.Fatal(err)
	}
	all, err := w.Roots()
	if err != nil {
		t.Fatal(err)
	}
	roots, leftOut = map[string]bool{}, map[string]bool{}
	for _, one := range all {
		name, _, _ := strings.Cut(one.Name, "[")
		roots[strings.TrimSpace(name)] = true
	}
	for _, l := range w.LeftOut() {
		leftOut[l.String()] = true
	}
	return roots, leftOut
}
