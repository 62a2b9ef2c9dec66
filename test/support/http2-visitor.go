// A visitor of HTTP/2 by Go: `http2-visitor PORT HOST`. Prints what 20 requests at once were answered.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

func main() {
	port, host := os.Args[1], os.Args[2]
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := &http.Client{Transport: transport}
	var group sync.WaitGroup
	lines := make([]string, 20)
	for index := range lines {
		group.Add(1)
		go func() {
			defer group.Done()
			sent := strings.Repeat("x", 100_000+index)
			// A reader of unknown length, so that the body has none.
			body := io.MultiReader(strings.NewReader(sent))
			request, _ := http.NewRequest("POST", "https://127.0.0.1:"+port+"/echo", body)
			request.Host = host
			answer, err := client.Do(request)
			if err != nil {
				lines[index] = err.Error()
				return
			}
			defer answer.Body.Close()
			bytes, err := io.ReadAll(answer.Body)
			lines[index] = fmt.Sprint(answer.Proto, " ", answer.StatusCode, " ", string(bytes) == sent, " ", err)
		}()
	}
	group.Wait()
	for _, line := range lines {
		fmt.Println(line)
	}
}
