// A small bundled file for the one format that has no encoder here. It is the same for every prompt.

/** A lake, 256 pixels square. */
const encoded =
  "UklGRhYHAABXRUJQVlA4IAoHAAAwRwCdASoAAQABP422yFO4OzI0qtUKy2AxielujzCNxNWzg+8jqv71Rqn0y5TAL5u75r0m+H9gjTBXJpCWKZ" +
  "lJm8C1TMmhbLL0dRJz2pC96JbSIuwIeJD0YzhUqsWb+XUorK6ogq0AIb9Q9iT694qDcmqA2biJLT02bJjd+/RsbKlZ7brQSJGYxIpIBBOuQUzl" +
  "482rjVY9OadFEm0tFHugyrvw5TGIQcKZttOle3JZYTQRpUN7sUh3wldB2HLiJT8Sh8JupExnVh4CYedj0DmSUGkq7X5KaWAKmqoZR0XrIJ38ML" +
  "ilhcjtPwnHHaKED+1tHyRmbV6hAGA6Os68aI/UsFpzjp0qt5u89syYn2xeuPWiCqGkvLtcO4Pg+HMbsNIkDmO6IQ072tsRNb6j1qfCMBsRbFsn" +
  "hyiSrJdhPXEAJBYq0PuGjBKZI/aYkdznInGIwHXcMZde+kzp7FJ6PPELGE0p+1lIdRnOJCk1Sip19CZDzOh6Bqmu2fp138KBpbo0kgVhZsNIyX" +
  "ZqyWH9Vy6YcP+WcHYGPgt0jjF2i/qmPZMDUEOycP9HPYXhJbq7jqDqAKKzunSGDmrkzTSaE44OfBLSdNXB0hvY8JmMxS2qNVUVfIv16DcLwbhd" +
  "ZP/u0Ybu530HjyMGf7ZH3d0BY8BmkYsCLWQHK/9EAscBPihwzdfHgsBI2WnV9uADa9Llr22qiGDF2iyAHRKNmd3LNV4kegaPJW8mMhWzjBCy96" +
  "MzmMMwdm17TZHnFigxB4YyMkEAAAD+4zmacj7biJM4vByD/m+n3melyBwwM8dgQP/OTJi6rvhgkX/QA8Ysera9B6ZsYjz5iwBGtyBOwBZ4j05+" +
  "4uzYUZoAKKo95AHNRyKV3A37KIpBhP2Bpb7vJCkZGD/rpGNZfl+bIa72RCTcWPakenU7ZAPWdEBwrcMdjX1iCrhn06sZ+l9sByvoTnsWrPbDAl" +
  "UwtmmZkAc7UdurZi+53UElxj+w7IxeokmcZs4VMh89uOJjM9MNz2LuqG0KFy5Q/DtGvdy/gF9fRvjsay62rM1b6N9/CMAcAneVHD+GwrFpmMNy" +
  "lfY7EqyfAbz9ur4MxsyvxF6UwGWovjkck2R+axdOsqkkVxNtuzf9GAPoc7fAW+qyIiMoID5K1YRNrMuRR2eYAV0MHhwUm3wrp8k/DbeMJDwPML" +
  "nRe8aBe1OxzLwLW+isfzOkGPWB5pciiEMCkpHhduy/3R1bXEfUjrs9UAYewMtbCWRv9Tv3Mt0pIkd5drvZMIFpGf36DfqWYnBqEer0/pxVAxZQ" +
  "MyhcbnewZy2RXoNzL8Fr0tZuSJD7hHQFGVExSTV2vt328M1xPcB9sXdYR1WC6MYqgYGBsMyYEjiugql+8oryGuyH6LkEuoK8oSV4rmKVlYQzFs" +
  "Es7IkfVbzA3Zsqti9XZXvFOUIWWZ9ltUEVEqfSt+f2X37R2WcsLdsvmKfiT2PrtMYmZPY5I4NQZg7Qzv1imd5WMY/wooiuKSGlgRjaay6pNHfb" +
  "CRnFCIEr1sAipTvmkPgjZI7UX+ri04wGI5iWVYn5sBGuoiEqr3hOWyrJ9DHIky2w0y5jCNBYgJm+chb9PvdpLh0qSpwpqzQ0PHZCm70JBuYcN6" +
  "WTipCDHxCW8yNZd6ewtbQP6Ih2WcLVlyxFdJ3oma7Y+oBHRrdrE0Nuu+xb+ydVLqPBoDdUGALjAL86UArR7R61yVbjZirT+08/OYYUv57hsAlX" +
  "vCL3VSpHiopWX6LwDQCxL0VaqqAEVTf8+1ui6u2tepXBWkJ4H5n3tqliuhNbQmwKiMx0WIuPwurqFWxDrIi5jSHUfCissQE8dMJLb5wYa0MU6y" +
  "yymsXwEbyXqN/ajgxSnl7O6UUkytU60WbpRzTjocW/OdOLMRl7PNymoq59y6W4EF7w82GVxkC9fazkC20aQrEFpOXhsYgcyMHrjcwR+34JhdU6" +
  "GLMV+DH/ssXGnjPDJOnV7JeyKRVFGzaO8A0DMO3OHn617VSIrE8WX6azMTCNP8h9S9lU7gWG2bctNkoNhxX8qTiR5iEXozEh01zhvsaMn0ehdS" +
  "VirXxz2SXs44lZT1m7/UvV3o1bj0ckwKvtl5cJUi2fUn7dFgVv6BJ0jCwgtEVo4VjXAXCsqKK9BbyHz2/rK65I55WFu9wr6larWBVD+K1ghqaz" +
  "x3NxRkvRxhQhe4AqQNZ3CFjBp6RmIbYiRbAXXfJ72sd4jf1hck9tv62Vex1IwLPPMbOMW2zK7YSIz9//NIApy+RzIHmadbNR6J2GRcV6PF5h1n" +
  "9+8U3B70S9HuyP9j/rFjghMA+C0lgJBUQfjYI+snuO7JwpdMM7Nnqheo/rPe3zz0yJlVHSMOJHPxsxSirTQwS+BiBjfVdFYzdmOU8IlpHspqsQ" +
  "c9zq+p4AAA==";

export const bundledWebp = (): Uint8Array => Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
