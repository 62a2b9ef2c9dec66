// The ordinary app on Go: fixed files, on net/http.
package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
)

func fileBytes(size int) []byte {
	bytes := make([]byte, size)
	for i := 0; i+4 <= size; i += 4 {
		binary.LittleEndian.PutUint32(bytes[i:], uint32(i/4)*2654435761)
	}
	return bytes
}

func main() {
	for name, size := range map[string]int{"20": 20, "1k": 1024, "10k": 10240, "64k": 65536, "100k": 102400, "1m": 1048576} {
		file := fileBytes(size)
		http.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Answer", r.Method+" "+r.URL.Path)
			w.Write(file)
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("listening %d\n", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
