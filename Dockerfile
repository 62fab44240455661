# Ranksight with Open MPI, valgrind and a compiler: docker build -t ranksight . && docker run --rm ranksight demo --example
FROM python:3.12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev valgrind \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir '/src[mpi,cube,caliper]' && rm -rf /src
RUN useradd --create-home user
USER user
WORKDIR /home/user
ENTRYPOINT ["ranksight"]
CMD ["--help"]
