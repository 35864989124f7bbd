// Prints the tests of the specification of CEL as JSON: one line for each file.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	"cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

func main() {
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.textproto"))
	if err != nil {
		panic(err)
	}
	sort.Strings(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		var tests test.SimpleTestFile
		if err := (prototext.UnmarshalOptions{AllowPartial: true}).Unmarshal(text, &tests); err != nil {
			panic(fmt.Errorf("%s: %w", file, err))
		}
		line, err := protojson.MarshalOptions{AllowPartial: true}.Marshal(&tests)
		if err != nil {
			panic(fmt.Errorf("%s: %w", file, err))
		}
		fmt.Println(string(line))
	}
}
