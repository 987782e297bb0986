package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadInstalledIsStrict(t *testing.T) {
	t.Parallel()
	good := "install ok installed\tlibc6\t2.36-9+deb12u14\tamd64\tsame\tno\t12990\t\tlibgcc-s1, libcrypt1 (>= 1:4.4.10-10~)\t\tlibc6-i386 (<< 2.36)\t\t\n"
	all, err := ReadInstalled(good + "deinstall ok config-files\tgone\t1\tall\t\t\t\t\t\t\t\t\t\n")
	if err != nil || len(all) != 1 || all[0].Name != "libc6" {
		t.Fatalf("it reads %+v, %v", all, err)
	}
	text := status(all)
	for _, want := range []string{"Package: libc6\n", "Version: 2.36-9+deb12u14\n", "Depends: libgcc-s1, libcrypt1 (>= 1:4.4.10-10~)\n", "Multi-Arch: same\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("apt reads %q, without %q", text, want)
		}
	}
	for name, bad := range map[string]string{
		"a line":            "libc6\n",
		"a name":            strings.Replace(good, "libc6\t", "../libc6\t", 1),
		"a version":         strings.Replace(good, "2.36-9+deb12u14", "2.36 9", 1),
		"an architecture":   strings.Replace(good, "\tamd64", "\tamd64\r", 1),
		"another line":      strings.Replace(good, "libgcc-s1,", "libgcc-s1\vPackage: x,", 1),
		"a relation's sign": strings.Replace(good, "libgcc-s1,", "$(id),", 1),
		"too much":          strings.Repeat(good, MaxInstalled/len(good)+1),
	} {
		if all, err := ReadInstalled(bad); err == nil {
			t.Errorf("%s: it reads %d packages", name, len(all))
		}
	}
}

func TestReadURIsIsStrict(t *testing.T) {
	t.Parallel()
	good := "'http://ann:secret@mirror.example/pool/t/tool_2%3a1.0%2b1_amd64.deb' tool_2%3a1.0+1_amd64.deb 634 SHA256:" + strings.Repeat("a", 64) + "\n"
	all, err := readURIs("Reading package lists...\n" + good)
	if err != nil || len(all) != 1 || all[0].Version != "2:1.0+1" || strings.Contains(all[0].URL, "secret") {
		t.Fatalf("it reads %+v, %v", all, err)
	}
	for name, bad := range map[string]string{
		"a weak digest":   strings.Replace(good, "SHA256:"+strings.Repeat("a", 64), "MD5Sum:"+strings.Repeat("a", 32), 1),
		"no digest":       strings.Replace(good, "SHA256:"+strings.Repeat("a", 64), "", 1),
		"a path":          strings.Replace(good, " tool_", " ../../etc/cron.d/tool_", 1),
		"another's name":  strings.Replace(good, " tool_", " .._", 1),
		"a version":       strings.Replace(good, " tool_2%3a", " tool_2%2f%0a", 1),
		"a size":          strings.Replace(good, " 634 ", " -1 ", 1),
		"too many":        strings.Repeat(good, maxPackages+1),
		"too much of all": strings.Repeat(strings.Replace(good, " 634 ", " 900000000 ", 1), 2),
	} {
		if all, err := readURIs(bad); err == nil {
			t.Errorf("%s: it reads %d packages", name, len(all))
		}
	}
}

func TestReadOrderIsStrict(t *testing.T) {
	t.Parallel()
	packages := []Package{{Name: "a", File: "a.deb"}, {Name: "b", File: "b.deb"}}
	got, err := readOrder("Inst a [0.9] (1 X [amd64]) []\nConf a (1 X [amd64])\nInst b (1 X [all])\nConf b (1 X [all])\n", packages)
	if err != nil || len(got) != 2 || len(got[0].Unpack) != 1 || got[1].Configure[0] != "b" {
		t.Errorf("it reads %+v, %v", got, err)
	}
	for _, bad := range []string{"Remv bash [5]\n", "Inst c (1 X [all])\n"} {
		if got, err := readOrder(bad, packages); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}

// TestAFileIsComparedOnceMore: what apt left is not taken on its word.
func TestAFileIsComparedOnceMore(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	if err := os.Mkdir(filepath.Join(work, "archives"), 0o700); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(work, "outside")
	s := &Set{work: work}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "")
	write(filepath.Join(work, "archives", "true.deb"), "")
	write(filepath.Join(work, "archives", "longer.deb"), "x")
	if err := os.Symlink(outside, filepath.Join(work, "archives", "link.deb")); err != nil {
		t.Fatal(err)
	}
	if err := s.verify(t.Context(), Package{File: "true.deb", SHA256: empty}); err != nil {
		t.Errorf("the true one: %v", err)
	}
	for name, p := range map[string]Package{
		"another digest": {File: "true.deb", SHA256: strings.Repeat("a", 64)}, "another size": {File: "longer.deb", SHA256: empty},
		"a way out": {File: "link.deb", SHA256: empty}, "none": {File: "none.deb", SHA256: empty},
	} {
		if err := s.verify(t.Context(), p); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"jq": true, "g++": true, "libstdc++6": true, "python3.11": true, "jq=1.6-2.1+deb12u3": true, "postgresql-client-15": true,
		"": false, "-y": false, "bash-": false, "a b": false, "jq;id": false, "~njq": false, "?installed": false, "./x.deb": false, "JQ": false, "jq/stable": false, "jq:i386": false, "task^": false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %v", name, got)
		}
	}
}

// TestAMirrorsCredentialsAreInNoError: apt prints them as somebody wrote them, whatever letters they have. A line of a mirror with a
// quote in its password is read all the same; of one that is none, neither part is said, nor in what the log has of apt's words.
func TestAMirrorsCredentialsAreInNoError(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"its-secret", "it's-secret", "it@secret", `it"secret`, "it:secret", "it/secret", "it%20secret", "it's@'secret"} {
		uri := "'https://ann:" + password + "@mirror.example/pool/t/tool_1_amd64.deb'"
		good := uri + " tool_1_amd64.deb 634 SHA256:" + strings.Repeat("a", 64)
		if p, err := readURI(good); err != nil || p.Name != "tool" || strings.Contains(p.URL, "secret") {
			t.Errorf("%s: %+v, %v", password, p, err)
		}
		for _, bad := range []string{uri + " tool_1_amd64.deb 634 MD5Sum:00", uri + " tool_1_amd64.deb", uri, strings.TrimSuffix(uri, "'")} {
			if _, err := readURI(bad); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "ann") {
				t.Errorf("%s: %v", bad, err)
			}
		}
		if said := withoutCredentials("Err:1 " + uri + "  401  Unauthorized\n"); strings.Contains(said, "secret") || !strings.Contains(said, "mirror.example/pool") {
			t.Errorf("the log has %q", said)
		}
	}
}
