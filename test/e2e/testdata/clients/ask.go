// Asks api.example with Go's net/http.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	r, err := http.NewRequest(http.MethodGet, "https://api.example/go/plain", nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(err)
	}
	defer a.Body.Close()
	_, _ = io.Copy(os.Stdout, a.Body)
	fmt.Println()
}
