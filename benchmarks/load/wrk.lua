-- Prints wrk's figures as one line of JSON: percentiles that its own summary does not show. Times in milliseconds.

function done(summary, latency)
  local errors = summary.errors
  local p = function(percent) return latency:percentile(percent) / 1000 end
  io.write(string.format(
    'REPORT {"requests":%d,"bytes":%d,"seconds":%.6f,"errors":%d,"latency":{"mean":%.4f,"p50":%.4f,"p90":%.4f,' ..
      '"p95":%.4f,"p99":%.4f,"p999":%.4f,"max":%.4f}}\n',
    summary.requests, summary.bytes, summary.duration / 1e6,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency.mean / 1000, p(50), p(90), p(95), p(99), p(99.9), latency.max / 1000
  ))
end
