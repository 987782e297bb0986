package e2b

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestWhatAnUploadWillAnswerTakesRoom: of each file that a form brings, its answer has what the sandbox says
// of it, metadata included. It is kept until the form has ended, so it takes room.
func TestWhatAnUploadWillAnswerTakesRoom(t *testing.T) {
	s := newDataStage(t)
	upload := func(files, metadata int) (sender *io.PipeWriter, whole bool) {
		body, sender := io.Pipe()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/files", body)
		r.Header.Set(headerSandbox, boxID)
		r.Header.Set(headerPort, strconv.Itoa(dataPort))
		r.Header.Set("X-Access-Token", "token-"+boxID)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		for i := range metadata {
			r.Header.Set(fmt.Sprintf("X-Metadata-N%d", i), strings.Repeat("m", maxMetadata))
		}
		go func() {
			s.data.ServeHTTP(httptest.NewRecorder(), r)
			_ = body.CloseWithError(io.ErrClosedPipe) // as the server does
		}()
		t.Cleanup(func() { _ = sender.CloseWithError(io.ErrUnexpectedEOF) })
		for i := range files {
			part := fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f%d\"\r\n\r\nx\r\n", i%7)
			if _, err := io.WriteString(sender, part); err != nil {
				return sender, false
			}
		}
		// Bytes behind the last file are read once that is written.
		_, err := io.WriteString(sender, "--b\r\nContent-Disposition: form-data; name=\"else\"\r\n\r\n"+strings.Repeat("y", 64<<10))
		return sender, err == nil
	}
	const requests, files = 8, 500
	held := func(metadata int) (int64, int) {
		before := heapNow()
		var all sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		var senders []*io.PipeWriter
		for range requests {
			all.Go(func() {
				sender, whole := upload(files, metadata)
				mu.Lock()
				defer mu.Unlock()
				senders = append(senders, sender)
				if whole {
					taken++
				}
			})
		}
		all.Wait()
		grown := heapNow() - before
		for _, sender := range senders {
			_ = sender.CloseWithError(io.ErrUnexpectedEOF)
		}
		return grown, taken
	}
	if grown, taken := held(0); taken != requests || grown > backend.RoomEach {
		t.Fatalf("%d of %d forms were taken, and hold %d MiB", taken, requests, grown>>20)
	}
	grown, taken := held(60)
	t.Logf("%d forms of %d files that have not ended hold %d MiB", taken, files, grown>>20)
	if grown > 3*backend.RoomEach {
		t.Errorf("%d forms of one sandbox's client hold %d MiB; its room is %d MiB", taken, grown>>20, backend.RoomEach>>20)
	}
}

// TestHeadersOfStalledFilesTakeRoom: a part's header is in memory for as long as its content takes to come, so
// it has room until then, with what it became.
func TestHeadersOfStalledFilesTakeRoom(t *testing.T) {
	const uploads = 8
	left := func(header string) (all, left int) {
		s := newDataStage(t)
		all = s.roomLeft()
		for i := range uploads {
			body, sender := io.Pipe()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/files", body)
			r.Header.Set(headerSandbox, boxID)
			r.Header.Set(headerPort, strconv.Itoa(dataPort))
			r.Header.Set("X-Access-Token", "token-"+boxID)
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				s.data.ServeHTTP(httptest.NewRecorder(), r)
				_ = body.CloseWithError(io.ErrClosedPipe) // as the server does
			}()
			t.Cleanup(func() { // before the sandbox's files are removed
				_ = sender.CloseWithError(io.ErrUnexpectedEOF)
				<-ended
			})
			part := fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f%d\"%s\r\n\r\n", i, header)
			if _, err := io.WriteString(sender, part+strings.Repeat("x", 64<<10)); err != nil { // the content has begun then
				t.Fatal(err)
			}
		}
		return all, s.roomLeft()
	}
	if all, left := left(""); left < all-1 {
		t.Fatalf("%d uploads with short headers leave %d of %d MiB", uploads, left, all)
	}
	var fields, parameters strings.Builder
	for i := range 4_000 {
		fmt.Fprintf(&fields, "\r\n%x:", i)
		fmt.Fprintf(&parameters, ";%x=a", i)
	}
	for what, header := range map[string]string{"fields": fields.String(), "parameters": parameters.String()} {
		if all, left := left(header); left > all-3 {
			t.Errorf("%d uploads whose headers have thousands of %s leave %d of %d MiB", uploads, what, left, all)
		}
	}
}
