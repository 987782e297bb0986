package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
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

func makeWheel(project string, content []byte) (wheel, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	info := project + "-1.0.dist-info/"
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{project + "/__init__.py", nil},
		{project + "/data.bin", content},
		{info + "METADATA", fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n", project)},
		{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
		{info + "RECORD", nil},
	} {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		if err == nil {
			_, err = io.Copy(w, bytes.NewReader(f.content))
		}
		if err != nil {
			return wheel{}, err
		}
	}
	if err := archive.Close(); err != nil {
		return wheel{}, err
	}
	sum := sha256.Sum256(out.Bytes())
	return wheel{project: project, file: project + "-1.0-py3-none-any.whl", sha256: hex.EncodeToString(sum[:]), bytes: out.Bytes()}, nil
}
