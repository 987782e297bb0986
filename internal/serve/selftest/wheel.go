package selftest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// registryHost is the name of the registry in the drill; it leads to the
// loopback, by the daemon's configuration.
const registryHost = "registry.example"

// releases makes the three packages, each with a marker in it.
func releases() map[string]*Release {
	all := map[string]*Release{}
	for _, role := range []string{allowed, refused, held} {
		all[role] = newRelease(role)
	}
	return all
}

func newRelease(role string) *Release {
	name, module := "selftest-"+role, "selftest_"+role
	info := module + "-" + version + ".dist-info/"
	files := [][2]string{
		{module + ".py", fmt.Sprintf("marker = %q\n", role)},
		{info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: cofferdam\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	var list strings.Builder
	for _, f := range files {
		sum := sha256.Sum256([]byte(f[1]))
		fmt.Fprintf(&list, "%s,sha256=%s,%d\n", f[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(f[1]))
	}
	files = append(files, [2]string{info + "RECORD", list.String() + info + "RECORD,,\n"})
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.Create(f[0])
		if err == nil {
			_, err = w.Write([]byte(f[1]))
		}
		if err != nil {
			panic(err) // memory takes every write
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	sum := sha256.Sum256(b.Bytes())
	r := &Release{Name: name, File: module + "-" + version + "-py3-none-any.whl", SHA256: hex.EncodeToString(sum[:]), Bytes: b.Bytes()}
	r.URL = "http://" + registryHost + "/files/" + r.File
	return r
}
