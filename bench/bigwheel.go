package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
)

// bigWheel is a valid wheel of about size bytes that don't compress.
func bigWheel(size int) (wheel, error) {
	noise := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // it never fails
	return makeWheel("big", noise)
}

// smallWheel is the least that a project can have.
func smallWheel() wheel {
	w, _ := makeWheel("small", []byte("small = True\n")) // a zip in memory does not fail
	return w
}

// makeWheel packs a wheel as strict readers want it: sizes in front of what they
// are of, and a RECORD of all files.
func makeWheel(project string, content []byte) (wheel, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	info := project + "-1.0.dist-info/"
	var record strings.Builder
	add := func(name string, content []byte) error {
		w, err := archive.CreateRaw(&zip.FileHeader{
			Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(content),
			CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(len(content)),
		})
		if err == nil {
			_, err = w.Write(content)
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
		return err
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{project + "/__init__.py", nil},
		{project + "/data.bin", content},
		{info + "METADATA", fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n", project)},
		{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
	} {
		if err := add(f.name, f.content); err != nil {
			return wheel{}, err
		}
	}
	if err := add(info+"RECORD", []byte(record.String()+info+"RECORD,,\n")); err != nil {
		return wheel{}, err
	}
	if err := archive.Close(); err != nil {
		return wheel{}, err
	}
	sum := sha256.Sum256(out.Bytes())
	return wheel{project: project, file: project + "-1.0-py3-none-any.whl", sha256: hex.EncodeToString(sum[:]), bytes: out.Bytes()}, nil
}
